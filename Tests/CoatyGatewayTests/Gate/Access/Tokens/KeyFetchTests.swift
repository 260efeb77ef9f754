import ProblemDetails
import TestSupport
import Testing

@testable import Access
@testable import Base

@Suite(.exclusive) struct KeyFetchTests {
    private static func failure(_ fetch: KeyFetch) -> String? {
        do throws(KeyFetch.Failure) {
            _ = try fetch.run { false }
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func aClosedPortIsAFailure() throws {
        let url = "http://127.0.0.1:\(try FreePort.tcp())/jwks"
        #expect(Self.failure(KeyFetch(url: url, authorities: nil)) == "Couldn't connect to server")
    }

    @Test func aServerThatDoesNotAnswerIsAFailure() throws {
        let server = try FullListener()
        let url = "http://127.0.0.1:\(server.port)/jwks"
        let begin = ContinuousClock.now
        let reason = Self.failure(KeyFetch(url: url, authorities: nil, timeout: .milliseconds(200)))
        #expect(reason == "Timeout was reached")
        #expect((.milliseconds(200) ..< .seconds(4)).contains(ContinuousClock.now - begin))
        withExtendedLifetime(server) {}
    }

    @Test func aServerOfAForeignAuthorityIsAFailure() throws {
        let certificates = try Certificates()
        let provider = try IdentityProvider(certificates)
        func failure(_ authority: String) -> String? {
            Self.failure(KeyFetch(url: provider.keys, authorities: certificates.path(authority)))
        }
        #expect(failure("ca.pem") == nil)
        #expect(failure("other-ca.pem")?.hasPrefix("SSL peer certificate") == true)
        #expect(failure("missing.pem")?.hasPrefix("Problem with the SSL CA cert") == true)
    }
}
