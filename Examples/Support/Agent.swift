public import Coaty
import CoatyMQTT
import Foundation

/// Common parts of the example agents: the options for their broker, their output and their end.
public enum Agent {
    /// Returns the options of an agent for the broker that `COATY_BROKER` names, `mqtt://localhost:1883` by default.
    ///
    /// - Throws: `MQTTOptionsError` if the variable is not a valid broker URL.
    public static func communicationOptions(namespace: String) throws -> CommunicationOptions {
        let broker = ProcessInfo.processInfo.environment["COATY_BROKER"] ?? "mqtt://localhost:1883"
        return CommunicationOptions(
            namespace: namespace,
            mqttClientOptions: try MQTTClientOptions(url: broker),
            shouldAutoStart: true
        )
    }

    /// Writes a line immediately, even if the output is a pipe or a file.
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
