import Coaty
import CoatyMQTT
import Foundation

/// An agent for tests, on the core library: `test-agent broker-url namespace`.
///
/// It shows what it observes as a line of JSON each: `{"event":…,"sourceId":…,"data":…}`, a raw message as
/// `{"event":"raw","topic":…,"text":…}`, a response to a request of its own as `{"response":…,"sourceId":…,"data":…}`. The
/// first line is `{"ready":"<its id>"}`: then the broker has acknowledged all of its subscriptions.
///
/// It answers who discovers, queries or updates a `com.example.Thing`, or calls `com.example.add`. What it is to say comes
/// as lines: `{"publish":…,"data":…}` with `channelId` or `topic`, `{"request":…,"data":…}` with `operation`. It ends with
/// its input.
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

    /// The lines of standard input, read on a thread that may wait.
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

/// Standard output, in lines that are never mixed.
enum Output {
    static func line(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }

    static func show(_ kind: String, _ name: String, _ event: some CommunicationEvent) {
        let payload = String(decoding: event.payload.bytes, as: UTF8.self).replacing("\n", with: " ")
        line(#"{"\#(kind)":"\#(name)","sourceId":\#(text(event.sourceId?.string ?? "")),"data":\#(payload)}"#)
    }

    /// A text as JSON.
    static func text(_ text: String) -> String { (try? PayloadCoder.encode(text)) ?? "null" }
}
