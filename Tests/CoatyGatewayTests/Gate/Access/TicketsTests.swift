import TestSupport
import Testing

@testable import Access
@testable import Base

@Suite(.exclusive) struct TicketsTests {
    private static let start = ContinuousClock.now
    private static let viewer = Principal.Subject.token("viewer")
    private static let maximum = 1000
    private static let maximumPerSubject = 100
    private var tickets = Tickets(maximum: maximum, maximumPerSubject: maximumPerSubject)
    private let page = WebOrigin("https://app.example")

    private static func time(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

    private mutating func issue(
        for subject: Principal.Subject = viewer,
        origin: WebOrigin? = nil,
        at seconds: Double = 0
    ) -> String {
        tickets.issue(for: .init(subject: subject), origin: origin, at: Self.time(seconds)).ticket
    }

    private mutating func redeem(_ ticket: String, origin: WebOrigin? = nil, at seconds: Double = 0) -> Principal
        .Subject?
    {
        tickets.redeem(ticket, origin: origin, at: Self.time(seconds))?.subject
    }

    @Test mutating func ticketIsValidOnce() {
        let first = issue()
        let second = issue(for: .anonymous)
        #expect(first != second)
        #expect(first.utf8.count == 43)
        #expect(redeem(first) == Self.viewer)
        #expect(redeem(first) == nil)
        #expect(redeem(second) == .anonymous)
        #expect(tickets.count == 0)
    }

    @Test mutating func otherTextIsNotATicket() {
        let ticket = issue()
        #expect(redeem("") == nil)
        #expect(redeem(ticket + "=") == nil)
        #expect(redeem(String(ticket.dropLast())) == nil)
        #expect(redeem(ticket) == Self.viewer)
    }

    @Test mutating func ticketExpires() {
        let (ticket, expires) = tickets.issue(for: .init(subject: Self.viewer), origin: nil, at: Self.time(0))
        #expect(expires == Self.time(30))
        let other = issue(at: 1)
        #expect(redeem(ticket, at: 30) == nil)
        #expect(redeem(other, at: 30.999) == Self.viewer)
    }

    @Test mutating func ticketIsForPagesOfItsOrigin() {
        let other = WebOrigin("https://other.example")
        for (issued, used) in [(page, nil), (nil, page), (page, other)] {
            let ticket = issue(origin: issued)
            #expect(redeem(ticket, origin: used) == nil)
            // A ticket can be redeemed only once.
            #expect(redeem(ticket, origin: issued) == nil)
        }
        let ticket = issue(origin: page)
        #expect(redeem(ticket, origin: WebOrigin("https://app.example:443")) == Self.viewer)
    }

    @Test mutating func oldestTicketOfASubjectIsReplaced() {
        let other = issue(for: .token("other"))
        let own = (0...Self.maximumPerSubject).map { _ in issue() }
        #expect(tickets.count == Self.maximumPerSubject + 1)
        #expect(redeem(own[0]) == nil)
        #expect(redeem(own[1]) == Self.viewer)
        _ = issue()
        #expect(redeem(own[2]) == Self.viewer)
        #expect(redeem(other) == .token("other"))
    }

    @Test mutating func oldestTicketIsReplaced() {
        let first = issue()
        let second = issue()
        for number in 0..<Self.maximum - 1 { _ = issue(for: .token("\(number / 50)")) }
        #expect(tickets.count == Self.maximum)
        #expect(redeem(first) == nil)
        #expect(redeem(second) == Self.viewer)
    }

    @Test mutating func usedTicketsLeaveNothingBehind() {
        for _ in 0..<5 * Self.maximum {
            let ticket = issue()
            #expect(redeem(ticket) == Self.viewer)
        }
        #expect(tickets.count == 0)
        _ = issue(at: 1)
        _ = issue(at: 31)
        #expect(tickets.count == 1)
    }
}
