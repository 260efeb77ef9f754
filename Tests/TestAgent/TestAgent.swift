import Coaty
import CoatyMQTT
import Foundation

/// An agent for tests that uses the core library: `test-agent broker-url namespace`.
///
/// It prints each observed event as a line of JSON: `{"event":…,"sourceId":…,"data":…}`, a raw message as
/// `{"event":"raw","topic":…,"text":…}`, and a response to one of its requests as
/// `{"response":…,"sourceId":…,"data":…}`. The first line is `{"ready":"<its id>"}`, printed when the broker has
/// acknowledged all subscriptions.
///
/// It answers Discover, Query and Update events for a `com.example.Thing`, and calls of `com.example.add`. Instructions
/// are lines of standard input: `{"publish":…,"data":…}` with `channelId` or `topic`, and `{"request":…,"data":…}` with
/// `operation`. The agent ends when its input ends.
@main
struct TestAgent {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else { throw UsageError() }
        let manager = try CommunicationManager(
            identity: Identity(name: "Test agent"),
            options: CommunicationOptions(
                namespace: arguments[2],
                mqttClientOptions: MQTTClientOptions(url: arguments[1])
            )
        )
        let observations = try Observations(manager)
        manager.start()
        await observations.untilStanding()
        Output.line(#"{"ready":\#(Output.text(manager.identityId.string))}"#)
        var requests: [PendingRequest] = []
        for await line in input() {
            if let request = try Instruction(line).carryOut(by: manager) { requests.append(request) }
        }
        await manager.stop()
    }

    /// Returns the lines of standard input, read on a thread that may block.
    private static func input() -> AsyncStream<String> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
    }

    private struct UsageError: Error {}
}

/// Standard output, written in whole lines.
enum Output {
    static func line(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }

    static func show(_ kind: String, _ name: String, _ event: some CommunicationEvent) {
        let payload = String(decoding: event.payload.bytes, as: UTF8.self).replacing("\n", with: " ")
        line(#"{"\#(kind)":"\#(name)","sourceId":\#(text(event.sourceId?.string ?? "")),"data":\#(payload)}"#)
    }

    /// Encodes a text as JSON.
    static func text(_ text: String) -> String { (try? PayloadCoder.encode(text)) ?? "null" }
}
