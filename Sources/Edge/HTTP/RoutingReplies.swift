import Base
import Coaty
import HTTPServer
import Network
import ProblemDetails

extension HTTPResponse {
    static let jsonHeaders = [(name: "Content-Type", value: "application/json"), ("Cache-Control", "no-store")]

    static func json(_ body: [UInt8], version: EntityTag? = nil) -> HTTPResponse {
        var headers = jsonHeaders
        if let version { headers.append(("ETag", version.text)) }
        return HTTPResponse(status: 200, headers: headers, body: body)
    }
}

extension HTTPRequest {
    /// The context id in the path.
    var contextId: CoatyUUID { CoatyUUID(wire: parameters["objectId"] ?? "") }

    var ifMatch: IfMatch? {
        get throws(InvalidParameter) {
            guard let value = header("If-Match") else { return nil }
            return try IfMatch(value)
        }
    }
}

extension Problems {
    static let unsupportedMediaType = unsupportedMediaType("application/json").response()

    static let unsupportedPatchType = Problem(
        type: typePrefix + "unsupported-media-type",
        title: "Unsupported media type",
        status: 415,
        detail: "Send the patch as application/merge-patch+json."
    ).response()
}
