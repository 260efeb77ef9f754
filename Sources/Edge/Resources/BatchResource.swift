import Access
import Base
import Coaty
import Gate
import HTTPServer
import Network

/// `POST /v1/batch`: publications as a JSON array or as NDJSON lines; each has its own result.
struct BatchResource: Sendable {
    let gate: Gate

    private static let unsupportedMediaType = Problems.unsupportedMediaType(
        "application/json or application/x-ndjson"
    ).response()

    func register(in router: inout GatewayRouter) {
        let maximum = gate.limits.batchPublications
        let tooMany = Problems.contentTooLarge(
            "A batch may have at most \(maximum) publications, the limit maximum-batch-publications."
        ).response()
        router.onPost("/v1/batch", publishingBy: gate) { request, principal, claim in
            let texts: [ArraySlice<UInt8>]
            if request.hasContentType("application/x-ndjson") {
                texts = Self.lines(request.body)
            } else if request.hasContentType("application/json") {
                do throws(PayloadError) {
                    texts = try Self.elements(request.body)
                } catch {
                    return .response(Problems.of(error).response())
                }
            } else {
                return .response(Self.unsupportedMediaType)
            }
            guard texts.count <= maximum else { return .response(tooMany) }
            var json = Array(#"{"results":"#.utf8)
            var isAnyPublished = false
            JSONText.appendArray(texts, to: &json) { $1 += outcome(of: $0, principal, &isAnyPublished) }
            json.append(UInt8(ascii: "}"))
            if !isAnyPublished { claim?.free() }
            return .response(HTTPResponse(status: 200, headers: [("Content-Type", "application/json")], body: json))
        }
    }

    private static func lines(_ body: [UInt8]) -> [ArraySlice<UInt8>] {
        body.split(separator: UInt8(ascii: "\n")).filter { line in
            line.contains { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") && $0 != UInt8(ascii: "\r") }
        }
    }

    private static func elements(_ body: [UInt8]) throws(PayloadError) -> [ArraySlice<UInt8>] {
        let array = try Payload(body).json
        guard array.kind == .array else { throw array.invalid("must be an array") }
        return array.elements.map(\.bytes)
    }

    /// Publishes one publication and returns its result.
    ///
    /// Each text is parsed separately, so that a pointer in an error is relative to the publication.
    private func outcome(
        of text: ArraySlice<UInt8>,
        _ principal: Principal,
        _ isAnyPublished: inout Bool
    ) -> [UInt8] {
        do {
            let json = try Payload(Array(text)).json
            let outcome = try gate.publish(
                try ClientPublications.publication(in: json, gate.limits),
                try json["lifetime"].map { try ObjectLifetime($0, of: nil, gate.limits) },
                by: principal
            )
            isAnyPublished = true
            return Array(#"{"status":202,\#(outcome.members)}"#.utf8)
        } catch {
            return Problems.of(error).body
        }
    }
}
