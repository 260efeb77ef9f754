import COpenSSL

/// Authenticated encryption with AES-256-GCM (NIST SP 800-38D) under one key.
///
/// A sealed text is the nonce, the ciphertext and the tag. Nonces are random, so one key may seal 2^32 texts.
package struct Seal: Sendable {
    static let nonceLength = 12
    static let tagLength = 16

    /// Invariant: OpenSSL does not change a fetched algorithm.
    nonisolated(unsafe) private static let algorithm = EVP_CIPHER_fetch(nil, "AES-256-GCM", nil)

    /// 32 bytes.
    private let key: [UInt8]

    package init(key: [UInt8]) {
        precondition(key.count == ClusterKey.length)
        self.key = key
    }

    /// Encrypts a text.
    ///
    /// - Parameter context: the text can be opened only with the same context, which is not part of the result.
    package func seal(_ text: [UInt8], for context: [UInt8]) -> [UInt8] {
        var sealed = [UInt8](repeating: 0, count: Self.nonceLength + text.count + Self.tagLength)
        precondition(RAND_bytes(&sealed, Int32(Self.nonceLength)) == 1, "OpenSSL has no random numbers")
        let isSealed = Self.withCipher { cipher in
            sealed.withUnsafeMutableBufferPointer { sealed in
                guard let nonce = sealed.baseAddress else { return false }
                let body = nonce + Self.nonceLength
                var count: Int32 = 0
                return EVP_EncryptInit_ex(cipher, Self.algorithm, nil, key, nonce) == 1
                    && EVP_EncryptUpdate(cipher, nil, &count, context, Int32(context.count)) == 1
                    && EVP_EncryptUpdate(cipher, body, &count, text, Int32(text.count)) == 1
                    && EVP_EncryptFinal_ex(cipher, body + text.count, &count) == 1
                    && EVP_CIPHER_CTX_ctrl(
                        cipher,
                        EVP_CTRL_AEAD_GET_TAG,
                        Int32(Self.tagLength),
                        body + text.count
                    ) == 1
            }
        }
        precondition(isSealed, "OpenSSL does not provide AES-256-GCM")
        return sealed
    }

    /// Decrypts a text; nil if it was not sealed with this key for this context.
    package func open(_ sealed: some Collection<UInt8>, for context: [UInt8]) -> [UInt8]? {
        guard sealed.count >= Self.nonceLength + Self.tagLength else { return nil }
        let nonce = Array(sealed.prefix(Self.nonceLength))
        let body = Array(sealed.dropFirst(Self.nonceLength).dropLast(Self.tagLength))
        var tag = Array(sealed.suffix(Self.tagLength))
        // One more byte, because an empty array may have no address.
        var text = [UInt8](repeating: 0, count: body.count + 1)
        let isOpened = Self.withCipher { cipher in
            var (count, rest): (Int32, Int32) = (0, 0)
            return EVP_DecryptInit_ex(cipher, Self.algorithm, nil, key, nonce) == 1
                && EVP_DecryptUpdate(cipher, nil, &count, context, Int32(context.count)) == 1
                && EVP_DecryptUpdate(cipher, &text, &count, body, Int32(body.count)) == 1
                && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagLength), &tag) == 1
                && EVP_DecryptFinal_ex(cipher, nil, &rest) == 1
        }
        guard isOpened else {
            // Otherwise a later call of OpenSSL on this thread would report this failure.
            ERR_clear_error()
            return nil
        }
        text.removeLast()
        return text
    }

    private static func withCipher(_ body: (OpaquePointer) -> Bool) -> Bool {
        guard let cipher = EVP_CIPHER_CTX_new() else { return false }
        defer { EVP_CIPHER_CTX_free(cipher) }
        return body(cipher)
    }
}
