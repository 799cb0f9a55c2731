package io.kvcache.spring.example;

import dev.langchain4j.model.chat.ChatModel;
import dev.langchain4j.model.chat.request.ChatRequestParameters;
import io.kvcache.core.KvCache;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.jlama.JlamaModel;
import io.kvcache.engines.jlama.JlamaOptions;
import io.kvcache.engines.langchain4j.PrefixCachedChatModel;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Random;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/// A chat model of langchain4j that keeps what it has computed in the starter's cache. Spring closes the generator and
/// the model before the cache.
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
class LangChainApplication {

    @Bean
    JlamaModel model(@Value("${example.model}") Path directory) throws IOException {
        return JlamaModel.load(directory, JlamaOptions.defaults());
    }

    @Bean
    PrefixCachedGenerator<JlamaModel> generator(JlamaModel model, KvCache cache) {
        return new PrefixCachedGenerator<>(model, cache, GeneratorOptions.DEFAULTS.withBlockTokens(16));
    }

    @Bean
    ChatModel chatModel(PrefixCachedGenerator<JlamaModel> generator) {
        ChatRequestParameters parameters =
                ChatRequestParameters.builder().maxOutputTokens(20).build();
        return new PrefixCachedChatModel(generator, parameters, new Random());
    }
}
