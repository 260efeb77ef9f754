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
    /// Missing properties come first, then null, false, true, numbers, strings, and last arrays and objects, which have no order.
    /// Objects that are alike stay in their order.
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

    /// Returns the elements that the filter selects, as ``ObjectMatcher/objects(_:matching:)`` says; they need not be decoded.
    ///
    /// - Parameter view: an element's JSON, which is not kept.
    package func select<Element, Failure: Error>(
        from elements: some Sequence<Element>,
        view: (Element) throws(Failure) -> JSONView
    ) throws(Failure) -> [Element] {
        let condition = conditions.map(CompiledCondition.init)
        let order = ObjectOrder(orderByProperties ?? [])
        var unlimited = WorkBudget(steps: .max)
        var hits: [(element: Element, key: ObjectOrder.Key)] = []
        for element in elements {
            let view = try view(element)
            var budget = WorkBudget(steps: ObjectFilterCondition.maximumSteps)
            guard (try? condition?.holds(for: view, &budget)) ?? (condition == nil),
                let key = try? order.key(of: view, &unlimited)
            else { continue }
            hits.append((element, key))
        }
        if orderByProperties?.isEmpty == false {
            hits = hits.enumerated().sorted { left, right in
                let comparison = (try? order.compare(left.element.key, right.element.key, &unlimited)) ?? 0
                return comparison == 0 ? left.offset < right.offset : comparison < 0
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
