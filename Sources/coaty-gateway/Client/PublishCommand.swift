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

    func run() throws {
        try Failure.reported {
            let lines = publications.isEmpty ? Array(AnyIterator { readLine() }) : publications
            var request = gateway.request("/v1/batch")
            // Each argument is one line of NDJSON, also if it was written on several.
            request.post(
                lines.map { $0.replacing("\n", with: " ") }.joined(separator: "\n"),
                type: "application/x-ndjson"
            )
            let answer = try request.answer()
            guard answer.status == 200, let json = try? JSONDocument(answer.body).root, let results = json["results"]
            else {
                throw Failure.refused(answer.problem)
            }
            var refused = 0
            for result in results.elements {
                Output.line(result.bytes)
                if result["status"]?.number != 202 { refused += 1 }
            }
            if refused > 0 { throw Failure.refused("\(refused) of \(lines.count) publications were refused") }
        }
    }
}
