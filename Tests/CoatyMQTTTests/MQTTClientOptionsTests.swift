import TestSupport
import Testing

@testable import CoatyMQTT

@Suite(.exclusive) struct MQTTClientOptionsTests {
    @Test func readsURLs() throws {
        let plain = try MQTTClientOptions(url: "mqtt://broker.example")
        #expect(plain.host == "broker.example" && plain.port == 1883 && plain.tls == nil && plain.username == nil)
        let secure = try MQTTClientOptions(url: "mqtts://us%40er:p%3Aw@[::1]:8884/")
        #expect(secure.host == "::1" && secure.port == 8884 && secure.tls != nil)
        #expect(secure.username == "us@er" && secure.password == "p:w")
        #expect(secure.address == "mqtts://[::1]:8884")
        #expect(try MQTTClientOptions(url: "mqtts://h").port == 8883)
    }

    @Test(arguments: [
        "", "broker", "http://h", "mqtt://", "mqtt://h:0", "mqtt://h:65536", "mqtt://h:x", "mqtt://h/topic",
        "mqtt://h?a=b",
    ])
    func refusesInvalidURLs(_ url: String) {
        #expect(throws: MQTTOptionsError.self) { try MQTTClientOptions(url: url) }
    }
}

@Suite(.exclusive) struct BackoffTests {
    @Test func doublesUpToItsLimitWithJitter() {
        var backoff = Backoff()
        var step = Backoff.first
        for _ in 0..<20 {
            let delay = backoff.delay()
            #expect(delay >= step * 0.5 && delay <= step)
            step = min(step * 2, Backoff.longest)
        }
        backoff.reset()
        #expect(backoff.delay() <= Backoff.first)
    }
}
