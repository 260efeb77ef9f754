import Coaty
import CoatyTestSupport
import ProblemDetails
import Synchronization
import TestSupport
import Testing

@testable import Access
@testable import Base
@testable import Edge
@testable import Feeds

/// Principals that are not listed in the configuration.
@Suite(.exclusive) struct GrantedPrincipalTests {
    private static let roles =
        #"{"viewer":[{"read":["status"]}],"named":[{"#
        + #""observe":["advertise"],"types":["T"],"where":["object.owner",["Equals",{"property":"principal.name"}]]}]}"#

    private static let jwt = #"{"issuer":"https://idp.example","audience":"gateway","keys":"keys.pem"}"#

    private static func policy(_ roles: String = roles, replacing old: Policy? = nil) throws -> Policy {
        let configuration = try AccessConfiguration(
            json: #"{"anonymous":["viewer"],"jwt":\#(jwt),"roles":\#(roles)}"#
        )
        return Policy(configuration, dialect: .plain, replacing: old)
    }

    private static func user(
        _ name: String = "ann",
        roles: [String] = ["viewer"],
        attributes: String = "{}",
        expiresIn rest: Duration? = nil,
        revocation: Revocation = Revocation(),
        under policy: Policy
    ) throws -> Principal {
        let validity = rest.map {
            let now = CoatyTimestamp.nowMillis() / 1000
            return Validity(until: now + $0 / .seconds(1), at: now, revocation)
        }
        return Principal(
            .init(
                subject: .user(issuer: "https://idp.example", name: name),
                granted: .init(
                    roles: roles,
                    attributes: Array(attributes.utf8),
                    configuration: try JWTConfiguration(JSONView(text: jwt))
                ),
                validity: validity
            ),
            address: "192.0.2.1",
            under: policy
        )
    }

    @Test func undefinedRolesAreIgnored() throws {
        let policy = try Self.policy()
        let permissions = try Self.user(roles: ["admin", "viewer", "other"], under: policy).permissions(under: policy)
        #expect(permissions?.roles == ["viewer"])
        // A claim with the name of the built-in role must not grant it by accident.
        #expect(permissions?.isUnrestricted == false)
        #expect(try Self.user(roles: [], under: policy).permissions(under: policy)?.grants.isEmpty == true)
        #expect(try Self.user(under: .open).permissions(under: .open)?.isUnrestricted == true)
    }

    @Test func equalPermissionsAreSharedWhileInUse() throws {
        let policy = try Self.policy()
        let ann = try Self.user("ann", under: policy)
        let bob = try Self.user("bob", under: policy)
        #expect(ann.permissions(under: policy) === bob.permissions(under: policy))
        let named = try ["ann", "bob"].map { try Self.user($0, roles: ["named"], under: policy) }
        #expect(named[0].permissions(under: policy) !== named[1].permissions(under: policy))
        weak var gone: Permissions?
        do {
            let other = try Self.user(attributes: #"{"a":1}"#, under: policy)
            gone = other.permissions(under: policy)
            #expect(gone != nil)
        }
        #expect(gone == nil)
    }

    @Test func reloadKeepsUnchangedPermissions() throws {
        let old = try Self.policy()
        let ann = try Self.user(under: old)
        let named = try Self.user(roles: ["named"], under: old)
        let before = (ann.permissions(under: old), named.permissions(under: old))
        let new = try Self.policy(
            Self.roles.replacing(#"["T"]"#, with: #"["U"]"#),
            replacing: old
        )
        #expect(ann.permissions(under: new) === before.0)
        #expect(named.permissions(under: new) !== before.1)
    }

    @Test func expiredPrincipalsHaveNoPermissions() async throws {
        let policy = try Self.policy()
        let access = AccessControl(policy)
        let ann = try Self.user(expiresIn: .milliseconds(80), under: policy)
        _ = try access.permissions(of: ann)
        let ended = Mutex(false)
        let deadline = AccessControl.expiry(of: ann) {
            let isExpired = (try? access.permissions(of: ann)) == nil
            ended.withLock { $0 = isExpired }
        }
        try await untilTrue("the expiry is reported") { ended.withLock { $0 } }
        #expect(#expect(throws: Problem.self) { try access.permissions(of: ann) }?.isExpiry == true)
        deadline?.cancel()
    }

    @Test func aRevokedKeyEndsItsPrincipals() throws {
        let policy = try Self.policy()
        let access = AccessControl(policy)
        let revocation = Revocation()
        let ann = try Self.user(expiresIn: .seconds(600), revocation: revocation, under: policy)
        let bob = try Self.user("bob", expiresIn: .seconds(600), under: policy)
        let reviews = Mutex(0)
        let ignore = access.observe { reviews.withLock { $0 += 1 } }
        defer { ignore() }
        revocation.revoke()
        access.review()
        #expect(reviews.withLock { $0 } == 1)
        #expect(throws: Problem.self) { try access.permissions(of: ann) }
        _ = try access.permissions(of: bob)
    }

    @Test func accountsAreByIssuerAndSubject() {
        let accounts = Accounts(Limits(), logger: .init(label: "test"))
        func account(_ issuer: String, _ name: String) -> ClientAccount {
            let subject = Principal.Subject.user(issuer: issuer, name: name)
            return accounts.account(of: Principal(subject, address: "192.0.2.1", under: .open))
        }
        let ann = account("https://a", "ann")
        #expect(ann === account("https://a", "ann"))
        #expect(ann !== account("https://b", "ann") && ann !== account("https://a", "bob"))
        let token = accounts.account(of: Principal(.token("ann"), address: "192.0.2.1", under: .open))
        #expect(ann !== token && ann.client.description == "user ann of https://a")
    }

    @Test func answerRightsAreKeptWhileInUse() async throws {
        let scene = try await GateScene(.open)
        let services = scene.services
        let held = try Self.user("held", under: .open)
        let kept = services.answerRights(of: held)
        let answering = try Self.user("answering", under: .open)
        let id = CoatyUUID()
        services.answerRights(of: answering).insert(DeliveredRequest(correlationId: id, isDiscover: false))
        weak var gone: AnswerRights?
        gone = services.answerRights(of: try Self.user("gone", under: .open))
        for number in 0..<1000 { _ = services.answerRights(of: try Self.user("\(number)", under: .open)) }
        #expect(services.answerRights(of: held) === kept)
        #expect(services.answerRights(of: answering).contains(id))
        #expect(gone == nil)
        await scene.stop()
    }

    @Test func principalNamesIssuerAndAccessNamesExpiry() throws {
        let policy = try Self.policy()
        let ann = try Self.user(expiresIn: .seconds(60), under: policy)
        #expect(ann.name == "ann" && ann.issuer == "https://idp.example")
        let permissions = try #require(ann.permissions(under: policy))
        let json = String(decoding: permissions.json(of: ann), as: UTF8.self)
        let expires = try #require(ann.validity?.expires)
        #expect(json.hasPrefix(#"{"name":"ann","credentials":"jwt","expires":\#(expires),"roles":["viewer"]"#))
    }
}
