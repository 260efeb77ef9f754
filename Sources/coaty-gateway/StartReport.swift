import CoatyGateway
import Foundation
import Logging

/// The lines on standard output that tell where the gateway listens, and when it is ready.
struct StartReport {
    private let gateway: RunningGateway
    private let token: String?
    private let logger: Logger

    /// - Parameter token: a token that the gateway has made; nil if it has made none.
    init(_ gateway: RunningGateway, token: String?, logger: Logger) {
        self.gateway = gateway
        self.token = token
        self.logger = logger
    }

    /// Writes where the gateway listens and, perhaps later, that it is ready.
    func write() async {
        let ready = "coaty-gateway ready on \(gateway.url) (broker \(gateway.broker))"
        let problem = gateway.brokerProblem
        let first = problem.map { problem in
            "coaty-gateway listening on \(gateway.url), broker \(gateway.broker) \(problem), retrying"
        }
        write([first ?? ready] + console)
        if problem != nil, await gateway.becomesReady() { write([ready]) }
    }

    /// A link that opens the console with the token in a browser on this machine.
    private var console: [String] {
        guard let token else { return [] }
        let url = gateway.url.replacing("//0.0.0.0:", with: "//localhost:")
            .replacing("//[::]:", with: "//localhost:")
        return ["console \(url)/#token=\(token)"]
    }

    private func write(_ lines: [String]) {
        do {
            // Not print(): a supervisor that reads a pipe must get the lines at once.
            try FileHandle.standardOutput.write(contentsOf: Data(lines.map { $0 + "\n" }.joined().utf8))
        } catch {
            logger.warning("standard output can't be written", metadata: ["line": "\(lines.first ?? "")"])
        }
    }
}
