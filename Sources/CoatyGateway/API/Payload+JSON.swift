import Coaty

extension Payload {
    /// The payload of an event that carries an object alone: `{"object": …}`.
    ///
    /// - Parameter json: the JSON text of the object.
    init(object json: some Sequence<UInt8>) throws(PayloadError) {
        try self.init(Array(#"{"object":"#.utf8) + json + "}".utf8)
    }
}

extension JSONView {
    /// Reads the payload of an event, which an object has as its `data`.
    ///
    /// - Throws: what `read` throws, with the place in this document.
    func data<Event>(_ read: (Payload) throws -> Event) throws -> Event {
        let data = try required("data")
        do {
            return try read(Payload(Array(data.bytes)))
        } catch let error as PayloadError {
            throw error.within(data)
        }
    }
}
