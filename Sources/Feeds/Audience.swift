import Base
import Coaty
import Network

/// The subscriptions of a feed, in groups with equal filters, and the record that is being delivered to them.
///
/// Groups whose filter can match only certain values are found by these values; all other filters are evaluated for
/// each event. A filter is evaluated once for its group, and a view once for all clients with the same permissions.
/// Each member of the group is charged for the filter and for its deliveries. Only the turns of a feed or of a slow
/// lane use the audience.
struct Audience: Sendable {
    /// Number of consecutive events for which a filter may be too expensive; then its subscriptions end.
    static let maximumLeftOut = 100
    /// Maximum length of an event's data, in bytes, for which the event counts in ``maximumLeftOut``.
    static let maximumCountedLength = 64 << 10
    /// Number of steps for one event from which a filter counts as expensive.
    static let expensiveSteps = 1000
    /// Number of steps for one event from which a client counts as expensive: those of its filters, texts and
    /// deliveries.
    private static let expensiveClientSteps = 5000
    /// The same for an overdrawn client. A client with fewer steps is not held back, even if it has caused much work in
    /// other feeds.
    private static let overdrawnClientSteps = 250
    /// Number of deliveries of an event to a client whose bytes do not count for this limit: a large event is no reason
    /// to serve each of its receivers separately.
    private static let lightDeliveries = 16
    /// Number of steps for visiting a group, without its filter.
    private static let groupSteps = 10
    /// Minimum number of steps per group member that is charged immediately: charging itself takes some steps.
    private static let chargedSteps = 16
    /// Number of subscriptions between two checks of the clock.
    private static let stride = 16

    private struct Key: Hashable {
        let filter: ClientCondition?
        let kind: ObjectKind?

        /// Values of which a matching object has at least one; nil if there are none.
        var accessKeys: [AccessKey]? { filter?.condition.accessKeys ?? kind.flatMap(\.accessKeys) }
    }

    private struct Member {
        let subscription: ClientSubscription
        /// The client that is charged for the subscription.
        let client: WorkRate?
        /// Records up to this position are not delivered.
        let start: UInt64
        /// The current series of events for which the filter was too expensive, and the number of them that count.
        var row = 0
        var leftOut = 0
    }

    private struct Group {
        let key: Key
        let accessKeys: [AccessKey]?
        /// In the order in which they joined; nil for those that have left.
        var members: [Member?] = []
        var count = 0
        /// The number of the current series of events for which the filter is too expensive. An event for which it is
        /// not ends the series.
        var row = 1
        /// Steps of verdicts that are not charged yet.
        var steps = 0
    }

    /// A subscription that was removed here and continues in another audience.
    struct Departure: Sendable {
        let subscription: ClientSubscription
        /// The last record that it has received. For a new snapshot, it may be later than the last delivered record.
        let position: UInt64
    }

    private struct Delivery {
        let record: EventRecord
        let position: UInt64
        /// Nil for a gap.
        var reading: EventReading?
        /// The groups that have not received the record; the last of them is next.
        var groups: [Int]
        /// For the last of the groups: its verdict, and the number of members that have received the record.
        var verdict: EventReading.Verdict?
        var delivered = 0
    }

    /// The work of one record for a client.
    private struct Work {
        /// Without the steps for the bytes of deliveries.
        var steps = 0
        var deliveries = 0
        /// Steps for the bytes of deliveries.
        var bytes = 0
        /// Whether the client must be held back.
        var isExpensive = false

        static func += (sum: inout Work, other: Work) {
            sum.steps += other.steps
            sum.deliveries += other.deliveries
            sum.bytes += other.bytes
        }

        /// The steps to compare with the bounds of expensive work.
        var counted: Int {
            let heavy = deliveries - Audience.lightDeliveries
            return steps + (heavy > 0 ? bytes / deliveries * heavy : 0)
        }
    }

    private var groups: [Int: Group] = [:]
    /// The groups that are found by values.
    private var index = FilterIndex<Int>()
    /// The groups that are evaluated for each event, in their order, and at most as many removed ones.
    private var unindexed: [Int] = []
    private var goneUnindexed = 0
    private var numbers: [Key: Int] = [:]
    /// The number of each subscription's group, and its place there.
    private var places: [ObjectIdentifier: (group: Int, index: Int)] = [:]
    private var lastNumber = 0
    private var delivery: Delivery?
    /// The subscriptions whose filter was expensive for the record.
    private var expensive: Set<ObjectIdentifier> = []
    /// The work of the record, by client.
    private var work: [ObjectIdentifier: Work] = [:]
    /// Whether one of them must be held back.
    private var hasExpensiveClient = false
    /// The clients for which a new text of the record was built. The first text does not count against a client,
    /// because the next client may need the same.
    private var writers: Set<ObjectIdentifier> = []
    /// The steps of one client that are not charged yet, and the work of the record for it.
    private var bill: (client: WorkRate, steps: Int, work: Work)?

    var isDelivering: Bool { delivery != nil }

    var isEmpty: Bool { groups.isEmpty }

    var subscriptions: [ClientSubscription] {
        groups.values.flatMap { group in group.members.compactMap { $0?.subscription } }
    }

    // MARK: - Subscriptions

    /// - Parameter start: the position up to which records are not delivered.
    mutating func insert(_ subscription: ClientSubscription, behind start: UInt64) {
        let key = Key(filter: subscription.options.filter, kind: subscription.kind)
        let number = numbers[key] ?? addGroup(key)
        guard var group = groups.removeValue(forKey: number) else { return }
        if group.members.count > 2 * group.count + 16 { compact(&group, number) }
        places[ObjectIdentifier(subscription)] = (number, group.members.count)
        group.members.append(Member(subscription: subscription, client: subscription.work, start: start))
        group.count += 1
        groups[number] = group
    }

    private mutating func addGroup(_ key: Key) -> Int {
        lastNumber += 1
        let keys = key.accessKeys
        if let keys { index.insert(lastNumber, keys: keys) } else { unindexed.append(lastNumber) }
        numbers[key] = lastNumber
        groups[lastNumber] = Group(key: key, accessKeys: keys)
        return lastNumber
    }

    /// - Returns: whether the subscription was found.
    @discardableResult
    mutating func remove(_ subscription: ClientSubscription) -> Bool {
        guard let (number, place) = places.removeValue(forKey: ObjectIdentifier(subscription)) else { return false }
        groups[number]?.members[place] = nil
        groups[number]?.count -= 1
        guard let group = groups[number], group.count == 0 else { return true }
        groups[number] = nil
        numbers[group.key] = nil
        if let keys = group.accessKeys {
            index.remove(number, keys: keys)
        } else {
            goneUnindexed += 1
            if 2 * goneUnindexed > unindexed.count {
                unindexed.removeAll { groups[$0] == nil }
                goneUnindexed = 0
            }
        }
        return true
    }

    /// Whether a filter or a client was expensive for the last record, or a client overdrawn.
    var wasExpensive: Bool { !expensive.isEmpty || hasExpensiveClient }

    /// Removes the subscriptions that must be held back from now on.
    ///
    /// - Parameter position: the last record that was delivered.
    mutating func removeExpensive(behind position: UInt64) -> [Departure] {
        guard wasExpensive else { return [] }
        let (expensive, work, hasExpensiveClient) = (expensive, work, hasExpensiveClient)
        forgetWork()
        guard !hasExpensiveClient else {
            return removeMembers(behind: position) { member in
                expensive.contains(ObjectIdentifier(member.subscription))
                    || member.client.flatMap { work[ObjectIdentifier($0)]?.isExpensive } ?? false
            }
        }
        // Some may have left meanwhile.
        let members = expensive.compactMap { places[$0] }.compactMap { groups[$0.group]?.members[$0.index] }
        return remove(members, position)
    }

    /// Removes all subscriptions.
    ///
    /// - Parameter position: the last record that was delivered.
    mutating func removeMembers(behind position: UInt64) -> [Departure] {
        removeMembers(behind: position) { _ in true }
    }

    private mutating func removeMembers(behind position: UInt64, where isRemoved: (Member) -> Bool) -> [Departure] {
        remove(groups.values.flatMap { $0.members.compactMap { $0.flatMap { isRemoved($0) ? $0 : nil } } }, position)
    }

    private mutating func remove(_ members: [Member], _ position: UInt64) -> [Departure] {
        for member in members { remove(member.subscription) }
        return members.map { Departure(subscription: $0.subscription, position: max($0.start, position)) }
    }

    mutating func removeAll() { self = Audience() }

    /// Removes the places of members that have left. Never called while a record is being delivered, because the
    /// delivery counts the places.
    private mutating func compact(_ group: inout Group, _ number: Int) {
        group.members.removeAll { $0 == nil }
        for (index, member) in group.members.enumerated() {
            guard let member else { continue }
            places[ObjectIdentifier(member.subscription)] = (number, index)
        }
    }

    // MARK: - Delivery

    /// Begins to deliver a record. The previous record must be delivered.
    mutating func begin(_ record: EventRecord, at position: UInt64) {
        forgetWork()
        guard !groups.isEmpty else { return }
        let reading: EventReading?
        switch record.content {
        case .event(let event): reading = EventReading(record, event)
        case .gap, .invalid: reading = nil
        case .nothing: return
        }
        let candidates = candidates(reading)
        guard !candidates.isEmpty else { return }
        delivery = Delivery(record: record, position: position, reading: reading, groups: candidates)
    }

    private mutating func forgetWork() {
        expensive.removeAll(keepingCapacity: true)
        work.removeAll(keepingCapacity: true)
        writers.removeAll(keepingCapacity: true)
        hasExpensiveClient = false
    }

    /// Returns the groups that may receive a record, in the order in which they were added, with the next one last.
    private func candidates(_ reading: EventReading?) -> [Int] {
        guard let objects = reading?.indexedObjects else { return groups.keys.sorted(by: >) }
        guard !index.isEmpty else { return unindexed.reversed() }
        var found: Set<Int> = []
        for object in objects { found.formUnion(index.candidates(in: object)) }
        return found.isEmpty ? unindexed.reversed() : (unindexed + found).sorted(by: >)
    }

    /// Continues to deliver the record.
    ///
    /// - Returns: the subscriptions that end, because their filter is too expensive.
    mutating func deliver(until limit: TurnLimit) -> [ClientSubscription] {
        guard var current = delivery.take() else { return [] }
        var exhausted: [ClientSubscription] = []
        while let number = current.groups.last {
            if deliver(&current, to: number, until: limit, &exhausted) {
                current.groups.removeLast()
                (current.verdict, current.delivered) = (nil, 0)
            }
            if !current.groups.isEmpty, limit.isOver {
                delivery = current
                break
            }
        }
        chargeBill()
        return exhausted
    }

    /// Delivers the record to a group.
    ///
    /// - Returns: false if the limit was reached before.
    private mutating func deliver(
        _ current: inout Delivery,
        to number: Int,
        until limit: TurnLimit,
        _ exhausted: inout [ClientSubscription]
    ) -> Bool {
        guard let group = groups[number] else { return true }
        if current.verdict == nil, let verdict = current.reading?.verdict(group.key.filter, group.key.kind) {
            current.verdict = verdict
            var isRowOver = true
            if case .tooExpensive = verdict { isRowOver = false }
            charge(current.reading?.takeSteps() ?? 0, to: number, isRowOver: isRowOver)
        }
        if let verdict = current.verdict, current.reading?.isNothing(verdict) ?? false { return true }
        while current.delivered < group.members.count {
            defer { current.delivered += 1 }
            if let member = group.members[current.delivered], current.position > member.start,
                let item = deliver(&current, to: member, of: group), case .leftOut = item,
                note(current.reading?.event.data.length ?? 0, group.row, number, current.delivered)
            {
                exhausted.append(member.subscription)
            }
            if current.delivered % Self.stride == Self.stride - 1, limit.isOver,
                current.delivered + 1 < group.members.count
            {
                return false
            }
        }
        return true
    }

    /// Charges the steps of a verdict to each member of a group: the cost of a filter does not depend on other members.
    /// If there are few steps for many members, they are collected first, and later charged to the members at that
    /// time.
    private mutating func charge(_ steps: Int, to number: Int, isRowOver: Bool) {
        guard var group = groups[number] else { return }
        let taken = steps > 0 ? Self.groupSteps + steps : 0
        group.row += isRowOver ? 1 : 0
        group.steps += taken
        let isDue = group.steps >= Self.chargedSteps * group.count
        let due = isDue ? group.steps : 0
        if isDue { group.steps = 0 }
        groups[number] = group
        guard due > 0 else { return }
        for case let member? in group.members {
            charge(due, Work(steps: taken), to: member)
            if steps > Self.expensiveSteps { expensive.insert(ObjectIdentifier(member.subscription)) }
        }
    }

    /// Charges steps to the client of a member, at the next change of the client.
    ///
    /// - Parameter taken: the work of the record.
    private mutating func charge(_ steps: Int, _ taken: Work, to member: Member) {
        guard let client = member.client else { return }
        if bill?.client !== client { chargeBill() }
        var (sum, work) = (steps, taken)
        if let bill {
            sum += bill.steps
            work += bill.work
        }
        bill = (client, sum, work)
    }

    private mutating func chargeBill() {
        guard let (client, steps, taken) = bill.take() else { return }
        let now = WorkBucket.now()
        client.spend(steps, at: now)
        let key = ObjectIdentifier(client)
        var sum = work[key] ?? Work()
        sum += taken
        let counted = sum.counted
        sum.isExpensive =
            counted > Self.expensiveClientSteps || counted > Self.overdrawnClientSteps && client.isOverdrawn(at: now)
        work[key] = sum
        if sum.isExpensive { hasExpensiveClient = true }
    }

    /// Records that an event was left out for a member of a group.
    ///
    /// - Returns: whether there were too many of them.
    private mutating func note(_ length: Int, _ row: Int, _ group: Int, _ place: Int) -> Bool {
        guard var member = groups[group]?.members[place] else { return false }
        if member.row != row { (member.row, member.leftOut) = (row, 0) }
        // Filters must not end because another client or agent publishes large events.
        if length <= Self.maximumCountedLength { member.leftOut += 1 }
        groups[group]?.members[place] = member
        return member.leftOut >= Self.maximumLeftOut
    }

    /// - Returns: the item for the member; nil if it receives nothing.
    private mutating func deliver(_ current: inout Delivery, to member: Member, of group: Group) -> QueuedItem? {
        let subscription = member.subscription
        if let receivers = current.record.receivers, !receivers.includes(subscription) { return nil }
        let view = subscription.currentView
        guard let verdict = current.verdict else {
            // Which events a limited view may see is known only from their content.
            guard let gap = QueuedItem(gap: current.record, isEntire: view == nil) else { return nil }
            charge(WorkRate.steps(toPass: 0), Work(steps: WorkRate.steps(toPass: 0)), to: member)
            subscription.take(gap, seenBy: view)
            return gap
        }
        let item = current.reading?.item(verdict, subscription.options, view)
        let steps = current.reading?.takeSteps() ?? 0
        guard let item else {
            if steps > 0 { charge(steps, Work(steps: steps), to: member) }
            return nil
        }
        let shared = current.reading?.takeSharedSteps() ?? 0
        let isFirst = shared == 0 || member.client.map { writers.insert(ObjectIdentifier($0)).inserted } ?? true
        let (pass, bytes) = (WorkRate.steps(toPass: 0), WorkRate.steps(toPass: item.size))
        let taken = Work(steps: steps + (isFirst ? 0 : shared) + pass, deliveries: 1, bytes: bytes - pass)
        charge(steps + shared + bytes, taken, to: member)
        // Only the first of a series is reported: a client that resumes after it gets the others again.
        if case .leftOut = item, member.row == group.row { return item }
        subscription.take(item, seenBy: view)
        return item
    }
}

extension ObjectKind {
    /// Maximum length of a name that is a key, in bytes.
    private static var maximumKeyLength: Int { 256 }

    /// The values that objects of this kind have in the index; nil if they can't be looked up.
    fileprivate var accessKeys: [AccessKey]? {
        switch self {
        case .core(let coreType):
            [AccessKey(member: "coreType", text: WireName(coreType.rawValue))]
        case .object(let objectType):
            objectType.text.utf8.count > Self.maximumKeyLength
                ? nil : [AccessKey(member: "objectType", text: objectType)]
        }
    }
}
