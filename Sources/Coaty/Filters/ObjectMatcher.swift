/// Applies filters to objects, to answer queries without a database.
public enum ObjectMatcher {
    /// Returns whether an object matches a filter's conditions. Ordering, take and skip are ignored.
    ///
    /// - Throws: `EncodingError` if JSON can't represent the object.
    public static func matchesFilter(obj: CoatyObject, filter: ObjectFilter) throws -> Bool {
        try filter.matches(view(obj))
    }

    /// Returns whether an object matches a filter's conditions.
    ///
    /// - Throws: `EncodingError` if JSON can't represent the object.
    public static func matchesFilter(obj: CoatyObject, filter: ContextFilter) throws -> Bool {
        try filter.matches(view(obj))
    }

    /// Returns the objects that a filter selects, in its order, without the skipped ones, and limited to the filter's
    /// `take`.
    ///
    /// Missing properties come first, followed by null, false, true, numbers, strings, and finally arrays and objects,
    /// which are unordered. Equal objects keep their order.
    ///
    /// - Throws: `EncodingError` if JSON can't represent an object.
    public static func objects<Object: CoatyObject>(
        _ objects: [Object],
        matching filter: ObjectFilter
    ) throws -> [Object] {
        try filter.select(from: objects, view: view)
    }

    private static func view(_ object: CoatyObject) throws -> JSONView {
        try JSONDocument(encoding: object).root
    }
}

extension ObjectFilter {
    /// Returns whether an object matches the conditions, without decoding it.
    public func matches(_ view: JSONView) -> Bool { conditions?.matches(view) ?? true }

    /// Returns the elements that the filter selects, like ``ObjectMatcher/objects(_:matching:)``, without decoding
    /// them.
    ///
    /// - Parameter view: returns an element's JSON, which is not kept.
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
    /// Returns whether a context matches the conditions, without decoding it.
    public func matches(_ view: JSONView) -> Bool { conditions?.matches(view) ?? true }
}
