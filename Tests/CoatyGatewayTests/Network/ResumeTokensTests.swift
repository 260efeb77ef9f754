import Coaty
import Testing
import TestSupport

@testable import Access
@testable import Cluster
@testable import Edge
@testable import Network

@Suite(.exclusive) struct ResumeTokensTests {
    private static let subjects: [Principal.Subject] = [
        .anonymous, .token("a"), .token("anonymous"), .user(issuer: "a", name: "b"), .user(issuer: "a1:b", name: ""),
        .user(issuer: "", name: "a"), .certificate("a"),
    ]

    @Test func tokenIsOfOneSubject() throws {
        let tokens = ResumeTokens(nil)
        let id = CoatyUUID()
        for owner in Self.subjects {
            let token = tokens.token(ResumableIdentity(id: id, takeovers: 7), for: owner)
            #expect(token.utf8.count <= ResumeTokens.maximumLength)
            for other in Self.subjects {
                let former = tokens.identity(token, for: other)
                #expect(former?.id == (other == owner ? id : nil))
                #expect(former?.takeovers == (other == owner ? 7 : nil))
            }
            #expect(tokens.identity(String(token.dropLast()), for: owner) == nil)
            #expect(ResumeTokens(nil).identity(token, for: owner) == nil)
        }
    }

    @Test func tokenIsValidInTheWholeCluster() throws {
        let keys = try ["a", "a", "b"].map { try ClusterKey(secret: String(repeating: $0, count: 32), "test") }
        let token = ResumeTokens(keys[0]).token(ResumableIdentity(id: CoatyUUID(), takeovers: 0), for: .token("a"))
        #expect(ResumeTokens(keys[1]).identity(token, for: .token("a")) != nil)
        #expect(ResumeTokens(keys[2]).identity(token, for: .token("a")) == nil)
    }
}
