import Coaty

extension Payload {
    /// Creates the payload of an event that contains only an object: `{"object": …}`.
    ///
    /// - Parameter json: the JSON text of the object.
    init(object json: some Sequence<UInt8>) throws(PayloadError) {
        try self.init(Array(#"{"object":"#.utf8) + json + "}".utf8)
    }
}

extension JSONView {
    /// Reads the event payload in the member `data`.
    ///
    /// - Throws: the error of `read`, with its pointer relative to this document.
    func data<Event>(_ read: (Payload) throws -> Event) throws -> Event {
        let data = try required("data")
        do {
            return try read(Payload(Array(data.bytes)))
        } catch let error as PayloadError {
            throw error.within(data)
        }
    }
}
