package io.kvcache.spring.example;

import org.springframework.ai.chat.messages.SystemMessage;
import org.springframework.ai.chat.messages.UserMessage;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/// An application with Spring AI's client of OpenAI, whose `spring.ai.openai.base-url` leads to a chat server of
/// KVCache. All its questions begin with the same instructions, so the server skips their prefill.
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
class SpringAiApplication {

    @Bean
    Assistant assistant(ChatModel model) {
        return new Assistant(model);
    }

    /// Answers questions.
    record Assistant(ChatModel model) {

        private static final SystemMessage INSTRUCTIONS =
                new SystemMessage("You answer in as few words as can be, and never ask anything back. ".repeat(2));

        ChatResponse answer(String question) {
            return model.call(new Prompt(INSTRUCTIONS, new UserMessage(question)));
        }
    }
}
