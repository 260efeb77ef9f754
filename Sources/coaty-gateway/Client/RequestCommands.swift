import ArgumentParser
import Coaty

/// The options of a request to agents.
struct ResponseOptions: ParsableArguments {
    @Option(help: "How long to wait for responses, such as 2s or 500 in milliseconds (the gateway's default).")
    var timeout: String?

    @Option(help: "Number of responses after which the request ends; 0 waits until the timeout (1).")
    var limit: Int?

    @Option(help: "Condition as JSON; the first response that matches ends the request.")
    var until: String?

    @OptionGroup(title: "Gateway") var gateway: GatewayOptions

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit must be at least 0") }
    }

    /// Sends the request, and prints each response as a line of JSON.
    func send(_ path: String, _ body: String) throws {
        try Failure.reported {
            var request = gateway.request(
                path,
                query: [("timeout", timeout), ("limit", limit.map(String.init)), ("until", until)],
                accept: "application/x-ndjson"
            )
            request.post(Array(body.utf8))
            var (count, problem): (Int, String?) = (0, nil)
            let answer = try request.lines(of: "application/x-ndjson") { line in
                guard let frame = try? JSONDocument(Array(line)).root else { return true }
                switch frame["op"]?.string {
                case "response":
                    count += 1
                    Output.line(line)
                    if let error = frame["data"]?["error"] {
                        problem = "the agent responded with an error: \(error["message"]?.string ?? "unknown")"
                    }
                case "error": problem = frame.problem ?? "unknown error"
                default: break
                }
                return true
            }
            guard answer.status == 200, answer.body.isEmpty else { throw answer.failure }
            if let problem { throw Failure.refused(problem) }
            if count == 0 { throw Failure.noResponse }
        }
    }
}

struct DiscoverCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "discover",
        abstract: "Discover objects, and print the responses.",
        discussion: """
            EXAMPLES:
              coaty-gateway discover '{"coreTypes":["Identity"]}' --limit 0
              coaty-gateway discover '{"objectTypes":["com.example.Job"]}'

            \(Failure.exitCodes)
            """
    )

    @Argument(help: "Data of the Discover event as JSON.")
    var event: String

    @OptionGroup(title: "Responses") var responses: ResponseOptions

    func run() throws { try responses.send("/v1/discover", event) }
}

struct QueryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "query",
        abstract: "Query objects, and print the responses.",
        discussion: """
            EXAMPLE:
              coaty-gateway query '{"objectTypes":["com.example.Job"]}' --limit 0

            \(Failure.exitCodes)
            """
    )

    @Argument(help: "Data of the Query event as JSON.")
    var event: String

    @OptionGroup(title: "Responses") var responses: ResponseOptions

    func run() throws { try responses.send("/v1/query", event) }
}

struct CallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Call a remote operation, and print the responses.",
        discussion: """
            EXAMPLE:
              coaty-gateway call com.example.switch '{"parameters":{"on":true}}'

            \(Failure.exitCodes)
            """
    )

    @Argument(help: "Name of the operation.")
    var operation: String

    @Argument(help: "Data of the Call event as JSON.")
    var event = "{}"

    @OptionGroup(title: "Responses") var responses: ResponseOptions

    func run() throws { try responses.send("/v1/call/\(GatewayOptions.encoded(operation))", event) }
}
