import ArgumentParser
import Coaty
import Foundation

struct PublishCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "publish",
        abstract: "Publish events.",
        discussion: """
            A publication is JSON as in POST /v1/batch. Without arguments, standard input has one per line, at most 10,000. \
            Prints the result of each as a line of JSON.

            EXAMPLES:
              coaty-gateway publish "$(cat publication.json)"
              coaty-gateway publish < publications.ndjson

            \(Failure.exitCodes)
            """
    )

    @OptionGroup(title: "Gateway") var gateway: GatewayOptions

    @Argument(help: "Publications.")
    var publications: [String] = []

    func validate() throws {
        guard publications.allSatisfy({ !$0.allSatisfy(\.isWhitespace) }) else {
            throw ValidationError("a publication must not be empty")
        }
    }

    func run() throws {
        try Failure.reported {
            var request = gateway.request("/v1/batch")
            request.post(body, type: "application/x-ndjson")
            let answer = try request.answer()
            guard let results = try answer.json()["results"] else { throw answer.failure }
            var (count, refused) = (0, 0)
            for result in results.elements {
                Output.line(result.bytes)
                count += 1
                if result["status"]?.number != 202 { refused += 1 }
            }
            if count == 0 { throw Failure.refused("there is no publication on standard input") }
            if refused > 0 { throw Failure.refused("\(refused) of \(count) publications were refused") }
        }
    }

    /// The publications, one in each line. An argument may have several lines.
    private var body: [UInt8] {
        get {
            guard !publications.isEmpty else { return Array(FileHandle.standardInput.readDataToEndOfFile()) }
            let lines = publications.map { text in
                text.utf8.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 }
            }
            return Array(lines.joined(separator: [UInt8(ascii: "\n")]))
        }
    }
}
