extension Payload {
    /// The payload with a number for each operator that has a name in a filter of it, all other bytes as they are.
    ///
    /// - Parameter filter: a filter in the payload that has been checked; nil where there is none.
    func numberingOperators(of filter: JSONView?) throws(PayloadError) -> Payload {
        var numbered: [UInt8] = []
        var end = 0
        for view in filter?["conditions"]?.operators ?? [] {
            guard let known = view.string.flatMap(ObjectFilterOperator.init(name:)) else { continue }
            // A view's bytes have their places in the document.
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
