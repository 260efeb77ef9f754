extension Payload {
    /// Returns the payload with each operator name of a filter replaced by its number; all other bytes stay unchanged.
    ///
    /// - Parameter filter: a checked filter in the payload; nil if there is none.
    func numberingOperators(of filter: JSONView?) throws(PayloadError) -> Payload {
        var numbered: [UInt8] = []
        var end = 0
        for view in filter?["conditions"]?.operators ?? [] {
            guard let known = view.string.flatMap(ObjectFilterOperator.init(name:)) else { continue }
            // The bytes of a view are a slice of the document's bytes.
            numbered += bytes[end..<view.bytes.startIndex]
            numbered += "\(known.rawValue)".utf8
            end = view.bytes.endIndex
        }
        return end == 0 ? self : try Payload(numbered + bytes[end...])
    }
}

extension JSONView {
    /// The operators of a filter's conditions, in the order of the text.
    fileprivate var operators: [JSONView] {
        guard let list = self["and"] ?? self["or"] else { return leafOperator.map { [$0] } ?? [] }
        return list.elements.compactMap(\.leafOperator)
    }

    /// The operator of `[property, [operator, operand…]]`.
    private var leafOperator: JSONView? {
        elements.dropFirst().first { _ in true }?.elements.first { _ in true }
    }
}
