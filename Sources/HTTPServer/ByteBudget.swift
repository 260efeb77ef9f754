extension HTTPServer {
    /// The memory that request bodies may take while they come in.
    ///
    /// It is asked for in steps of 16 KiB. Both methods are called on the server's threads and must not block.
    public protocol ByteBudget: AnyObject, Sendable {
        /// Takes bytes unless there are too few.
        ///
        /// - Returns: Whether the bytes were taken; if not, the request gets 503.
        func take(_ bytes: Int) -> Bool

        /// Gives back bytes that were taken.
        func give(_ bytes: Int)
    }
}

/// A request body of which more may come, and the memory for it.
struct InboundBody: ~Copyable {
    /// What a part has done to the body.
    enum Outcome {
        case taken
        /// It makes the body larger than allowed.
        case tooLong
        /// The budget has no memory for it.
        case overBudget
    }

    /// What the budget is asked for at once.
    private static let step = 16 * 1024
    /// The most memory that a mere declaration of a length gets.
    private static let maximumReservation = 64 * 1024

    /// The bytes received so far.
    private(set) var bytes: [UInt8] = []
    private let budget: (any HTTPServer.ByteBudget)?
    private var reserved = 0
    private var taken = 0

    init(budget: (any HTTPServer.ByteBudget)?) { self.budget = budget }

    deinit {
        if taken > 0 { budget?.give(taken) }
    }

    /// Adds a part.
    ///
    /// - Parameters:
    ///   - declaredLength: the length of the whole body; nil if it is not known.
    ///   - limit: the maximum length.
    mutating func append(_ part: UnsafeRawBufferPointer, declaredLength: Int?, limit: Int) -> Outcome {
        let length = bytes.count + part.count
        guard length <= limit else { return .tooLong }
        if length > reserved {
            // A body that has come whole is not charged: it is handled next.
            let size = length == declaredLength ? length : size(for: length, declaredLength, limit)
            if length != declaredLength || taken > 0 {
                let missing = (size + Self.step - 1) / Self.step * Self.step - taken
                guard missing <= 0 || budget?.take(missing) ?? true else { return .overBudget }
                taken += max(0, missing)
            }
            bytes.reserveCapacity(size)
            reserved = size
        }
        bytes.append(contentsOf: part)
        return .taken
    }

    /// Twice as much as before, as long as that much can come.
    private func size(for length: Int, _ declaredLength: Int?, _ limit: Int) -> Int {
        if bytes.isEmpty, let declaredLength { return max(length, min(declaredLength, Self.maximumReservation)) }
        return max(length, min(max(2 * reserved, Self.step), declaredLength ?? limit))
    }
}
