package import Coaty

extension JSONView {
    /// Reads the event payload in the member `data`.
    ///
    /// - Throws: the error of `read`, with its pointer relative to this document.
    package func data<Event>(_ read: (Payload) throws -> Event) throws -> Event {
        let data = try required("data")
        do {
            return try read(Payload(Array(data.bytes)))
        } catch let error as PayloadError {
            throw error.within(data)
        }
    }
}
