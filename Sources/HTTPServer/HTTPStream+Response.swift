import CMicroHTTPD

extension HTTPStream {
    /// `MHD_CONTENT_READER_END_OF_STREAM`, a macro that is not imported.
    static let endOfStream = -1
    /// `MHD_CONTENT_READER_END_WITH_ERROR`, another macro that is not imported.
    static let endWithError = -2

    /// Returns a response of libmicrohttpd that ends with this stream and keeps it alive; `nil` if memory runs out.
    func makeResponse(headers: [(name: String, value: String)]) -> OpaquePointer? {
        let context = Unmanaged.passRetained(self)
        let response = MHD_create_response_from_callback(
            UInt64.max,
            // libmicrohttpd asks for bytes, but gets none.
            1,
            { context, _, _, _ in
                guard let context else { return HTTPStream.endOfStream }
                return Unmanaged<HTTPStream>.fromOpaque(context).takeUnretainedValue().proceed()
            },
            context.toOpaque(),
            { context in
                guard let context else { return }
                Unmanaged<HTTPStream>.fromOpaque(context).release()
            }
        )
        guard let response else {
            context.release()
            return nil
        }
        addHeaders(headers, to: response)
        return response
    }
}
