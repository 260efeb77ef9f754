public import Coaty
import CoatyMQTT
import Foundation

/// What the examples' agents share: how they find their broker, and how they end.
public enum Agent {
    /// The options of an agent on the broker that `COATY_BROKER` names, `mqtt://localhost:1883` by default.
    ///
    /// - Throws: `MQTTOptionsError` where the variable is no URL of a broker.
    public static func communicationOptions(namespace: String) throws -> CommunicationOptions {
        let broker = ProcessInfo.processInfo.environment["COATY_BROKER"] ?? "mqtt://localhost:1883"
        return CommunicationOptions(
            namespace: namespace,
            mqttClientOptions: try MQTTClientOptions(url: broker),
            shouldAutoStart: true
        )
    }

    /// Writes a line at once, also where the output is a pipe or a file.
    public static func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }

    /// Waits for SIGINT or SIGTERM.
    public static func untilTerminated() async {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self)
        let sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { continuation.yield() }
            source.resume()
            return source
        }
        for await _ in signals { break }
        for source in sources { source.cancel() }
    }
}
