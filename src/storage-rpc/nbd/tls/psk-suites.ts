/** NBD must not offer less by default (proto.md, "TLS versions"). */
export const TLS_VERSION_MIN = 'TLSv1.2';

/** Suites with forward secrecy. */
export const PSK_TLS = {
  minVersion: TLS_VERSION_MIN,
  ciphers: 'kECDHEPSK+HIGH:kDHEPSK+HIGH:TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256',
  dhparam: 'auto',
} as const;
