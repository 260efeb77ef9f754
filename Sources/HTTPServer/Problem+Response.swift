public import ProblemDetails

extension Problem {
    /// Returns the details as a response with the media type `application/problem+json`.
    public func response() -> HTTPResponse {
        HTTPResponse(
            status: status,
            headers: [("Content-Type", "application/problem+json")] + headers,
            body: body
        )
    }
}
