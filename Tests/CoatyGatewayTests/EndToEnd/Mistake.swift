import Foundation
import TestSupport

/// Mistakes of clients, and the gateway's exact answers.
enum Mistake {
    /// A row of the table.
    ///
    /// The request is `METHOD /path`, `WS /path` for a WebSocket handshake, or a frame on `/v1/ws`; the body is JSON.
    /// The answer has the status of a problem, the last part of its type, and its detail.
    typealias Row = (request: String, body: String?, answer: String)

    static let all = names + values + filters + paths

    /// Sends a request with a mistake.
    ///
    /// - Parameter client: an open connection to `/v1/ws`.
    /// - Returns: the answer in the form of the table.
    static func answer(to row: Row, of gateway: GatewayProcess, _ client: FrameClient) throws -> String {
        if row.request.hasPrefix("{") {
            try client.send(row.request)
            return summary(try client.next().json)
        }
        let words = row.request.split(separator: " ", maxSplits: 1).map(String.init)
        if words[0] == "WS" {
            let body = try WebSocketClient(port: gateway.port).shakeHands(path: words[1]).body
            return summary((try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:])
        }
        let fields = row.body == nil ? [] : [("Content-Type", "application/json")]
        return summary(try gateway.request(words[0], words[1], headers: fields, body: row.body).json ?? [:])
    }

    private static func summary(_ problem: [String: Any]) -> String {
        let type = (problem["type"] as? String)?.replacing("urn:coaty-gateway:problem:", with: "") ?? ""
        return "\(problem["status"] ?? "") \(type): \(problem["detail"] ?? "")"
    }
}
