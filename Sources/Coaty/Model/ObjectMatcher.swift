/// Applies filters to objects, for those who answer queries without a database.
public enum ObjectMatcher {
    /// Whether an object is as a filter's conditions say. Its ordering, take and skip do not count.
    ///
    /// - Throws: `EncodingError` where the object holds what JSON can't say.
    public static func matchesFilter(obj: CoatyObject, filter: ObjectFilter) throws -> Bool {
        try filter.matches(view(obj))
    }

    /// Whether an object is as a filter's conditions say.
    ///
    /// - Throws: `EncodingError` where the object holds what JSON can't say.
    public static func matchesFilter(obj: CoatyObject, filter: ContextFilter) throws -> Bool {
        try filter.matches(view(obj))
    }

    /// The objects that a filter selects, in its order, without those it skips, and no more than it takes.
    ///
    /// What is missing comes first, then null, false, true, numbers, strings, and last what has no order. Objects that are
    /// alike stay in their order.
    ///
    /// - Throws: `EncodingError` where an object holds what JSON can't say.
    public static func objects<Object: CoatyObject>(
        _ objects: [Object],
        matching filter: ObjectFilter
    ) throws -> [Object] {
        try filter.select(from: objects, view: view)
    }

    private static func view(_ object: CoatyObject) throws -> JSONView {
        try JSONDocument(PayloadCoder.encodeBytes(object)).root
    }
}

extension ObjectFilter {
    /// Whether an object is as the conditions say; it need not be decoded.
    public func matches(_ view: JSONView) -> Bool { conditions?.matches(view) ?? true }

    /// What of the elements the filter selects, as ``ObjectMatcher/objects(_:matching:)`` says; they need not be decoded.
    ///
    /// - Parameter view: an element's JSON.
    package func select<Element, Failure: Error>(
        from elements: some Sequence<Element>,
        view: (Element) throws(Failure) -> JSONView
    ) throws(Failure) -> [Element] {
        var hits: [(element: Element, keys: [OrderKey])] = []
        let order = orderByProperties ?? []
        for element in elements {
            let view = try view(element)
            guard matches(view) else { continue }
            hits.append((element, order.map { OrderKey(view.value(at: $0.objectFilterProperties.names)) }))
        }
        if !order.isEmpty {
            hits = hits.enumerated().sorted { left, right in
                for ((left, right), property) in zip(zip(left.element.keys, right.element.keys), order) {
                    let comparison = left.compare(right)
                    if comparison != 0 { return (comparison < 0) == (property.sortingOrder == .Asc) }
                }
                return left.offset < right.offset
            }.map(\.element)
        }
        let rest = hits.dropFirst(max(0, skip ?? 0)).map(\.element)
        guard let take, take != 0 else { return rest }
        return Array(rest.prefix(max(0, take)))
    }
}

extension ContextFilter {
    /// Whether a context is as the conditions say; it need not be decoded.
    public func matches(_ view: JSONView) -> Bool { conditions?.matches(view) ?? true }
}

/// A property's value in an ordering. Unlike the operators it is never undecided: kinds of value have an order themselves.
private struct OrderKey {
    private let rank: Int
    private let value: OrderedValue?

    init(_ view: JSONView?) {
        switch view?.kind {
        case nil: rank = 0
        case .null: rank = 1
        case .bool: rank = 2
        case .number: rank = 3
        case .string: rank = 4
        case .array, .object: rank = 5
        }
        value = rank < 5 ? view.flatMap { OrderedValue($0) } : nil
    }

    func compare(_ other: OrderKey) -> Int {
        guard rank == other.rank else { return rank < other.rank ? -1 : 1 }
        return value.flatMap { value in other.value.flatMap { value.compare($0) } } ?? 0
    }
}
