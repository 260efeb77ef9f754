import Coaty
import Logging
import TestSupport
import Testing

@testable import Access
@testable import Base

/// Changing keys at a URL. No thread loads them; the test does.
@Suite(.exclusive) struct KeyStoreTests {
    private struct Scene {
        let provider: IdentityProvider
        let store: KeyStore
        private let verifier: TokenVerifier

        init(hasIds: Bool = true, minimumPause: Duration = .zero) throws {
            provider = try IdentityProvider()
            if !hasIds { for path in ["/rotate?kid=none", "/retire"] { try provider.post(path) } }
            let json = #"{"issuer":"\#(provider.issuer)","audience":"coaty-gateway","keys":"\#(provider.keys)"}"#
            let configuration = try JWTConfiguration(JSONView(text: json))
            store = try KeyStore(configuration.keys, logger: Logger(label: "test"), minimumPause: minimumPause) {}
            verifier = TokenVerifier(configuration, keys: store)
        }

        /// Loads the keys.
        ///
        /// - Returns: whether a key was revoked.
        func refresh() -> Bool { store.refresh { false }.hasRevoked }

        /// Verifies a token.
        ///
        /// - Returns: the reason of a refusal; nil if the token is accepted.
        func refusal(_ token: String) -> TokenVerifier.Refusal? {
            do throws(TokenVerifier.Refusal) {
                _ = try verifier.authenticate(token)
                return nil
            } catch {
                return error
            }
        }

        func isUnknown(_ token: String) -> Bool {
            if case .keyUnknown = refusal(token) { true } else { false }
        }
    }

    @Test(arguments: [true, false])
    func aKeyThatIsReplacedWithoutANewIdIsFetched(hasIds: Bool) throws {
        let scene = try Scene(hasIds: hasIds)
        let (first, second) = (try scene.provider.token(), try scene.provider.token())
        #expect(scene.refusal(first) == .keysNotLoaded)
        #expect(!scene.refresh() && scene.refusal(first) == nil)
        try scene.provider.post("/replace")
        let new = try scene.provider.token()
        #expect(scene.isUnknown(new))
        #expect(scene.refresh())
        #expect(scene.refusal(new) == nil)
        // The former key has been removed, also for tokens that were already verified.
        for old in [first, second] { #expect(scene.isUnknown(old)) }
        #expect(!scene.refresh())
        for old in [first, second] { #expect(scene.refusal(old) == .invalid("The signature is wrong.")) }
        #expect(try scene.provider.requests() == 3)
    }

    /// If keys have no ids, a token with another algorithm leads to a fetch.
    @Test func aKeyOfAnotherAlgorithmIsFetched() throws {
        let scene = try Scene(hasIds: false)
        #expect(!scene.refresh())
        for path in ["/rotate?kid=none", "/rotate?kid=none", "/retire"] { try scene.provider.post(path) }
        let new = try scene.provider.token()
        #expect(scene.isUnknown(new) && scene.refresh() && scene.refusal(new) == nil)
    }

    @Test func allTokensShareOneFetchPerPause() throws {
        let scene = try Scene(minimumPause: .seconds(10))
        let start = ContinuousClock.now
        func ask(_ number: Int, at seconds: Double) -> Duration? {
            let question = KeyStore.Question.token(TokenDigest(of: "\(number)"))
            return scene.store.ask(question, fetched: scene.store.fetched, at: start + .seconds(seconds))
        }
        func refresh(at seconds: Double) throws -> Int {
            _ = scene.store.refresh(at: start + .seconds(seconds)) { false }
            return try scene.provider.requests()
        }
        #expect(try refresh(at: 0.5) == 1)
        for number in 0..<100 { #expect(ask(number, at: 1) == .seconds(9.5)) }
        #expect(try refresh(at: 10.4) == 1)
        #expect(try refresh(at: 10.5) == 2)
        for number in 0..<100 { #expect(ask(number, at: 11) == nil) }
        #expect(ask(100, at: 11.5) == .seconds(9))
        #expect(try refresh(at: 20.4) == 2)
        #expect(try refresh(at: 20.5) == 3)
        #expect(ask(100, at: 21) == nil)
        #expect(try refresh(at: 40) == 3)
    }

    @Test func tokenWaitsDespiteManyUnknownKeys() throws {
        let scene = try Scene()
        #expect(!scene.refresh())
        try scene.provider.post("/rotate")
        let new = try scene.provider.token()
        func flood(_ name: String) {
            for number in 0...KeyStore.maximumQuestions {
                _ = scene.store.ask(.id("\(name)\(number)"), fetched: scene.store.fetched)
            }
        }
        flood("a")
        #expect(scene.isUnknown(new))
        flood("b")
        #expect(scene.isUnknown(new))
        #expect(!scene.refresh() && scene.refusal(new) == nil)
    }

    @Test func aFailedRefreshKeepsTheKeys() throws {
        let scene = try Scene()
        #expect(!scene.refresh())
        let old = try scene.provider.token()
        try scene.provider.post("/rotate")
        let new = try scene.provider.token()
        try scene.provider.post("/down")
        #expect(scene.isUnknown(new) && !scene.refresh() && scene.isUnknown(new))
        #expect(try scene.provider.requests() == 2)
        #expect(scene.refusal(old) == nil)
    }
}
