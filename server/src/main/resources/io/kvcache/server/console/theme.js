// A classic script in the head: the theme is set before the first paint, so a dark page never flashes white.
(() => {
  'use strict';
  const STORAGE_KEY = 'kvcache.theme';
  const CHOICES = ['auto', 'light', 'dark'];
  const system = window.matchMedia('(prefers-color-scheme: dark)');

  function stored() {
    try {
      const value = localStorage.getItem(STORAGE_KEY);
      return CHOICES.includes(value) ? value : 'auto';
    } catch {
      return 'auto'; // storage is blocked: the choice then lasts as long as the page
    }
  }

  let choice = stored();

  function apply() {
    const dark = choice === 'dark' || (choice === 'auto' && system.matches);
    document.documentElement.dataset.bsTheme = dark ? 'dark' : 'light';
    window.dispatchEvent(new Event('themechange'));
  }

  window.kvcacheTheme = {
    choice: () => choice,
    next() {
      choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
      try {
        localStorage.setItem(STORAGE_KEY, choice);
      } catch {
        // See stored().
      }
      apply();
      return choice;
    },
  };
  system.addEventListener('change', apply);
  apply();
})();
