package import Coaty

extension CoatyUUID {
    /// The ids that a client may mean: this one and, if it is a UUID, the same in lower and in upper case, as agents write
    /// them. UUIDs are read without regard to case (RFC 9562, section 4); on the wire, ids are opaque.
    package var spellings: [CoatyUUID] {
        guard Self.isUUID(string) else { return [self] }
        return [self, CoatyUUID(wire: string.lowercased()), CoatyUUID(wire: string.uppercased())]
    }
}
