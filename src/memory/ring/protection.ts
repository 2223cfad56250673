/** Whether packets may travel unprotected. `require`: never. `prefer`: to and from peers without keys. */
export type ProtectionMode = 'require' | 'prefer';

export const PACKET_CIPHERS = ['aes-128-gcm', 'aes-256-gcm'] as const;
export type PacketCipherName = (typeof PACKET_CIPHERS)[number];

/** Keys of both directions between this endpoint and a peer, as this end sees them. */
export interface AssociationTerms {
  /** Names the association in what this end receives: 31 bits, chosen by this end, not 0. */
  readonly spi: number;
  readonly remoteSpi: number;
  readonly peer: string;
  /** UDP port that the peer receives on, and sends from unless its ports follow from the flow. */
  readonly peerUdpPort: number;
  readonly hasFixedPort: boolean;
  /** Of the two ends, the one that changes keys; the other follows. */
  readonly isInitiator: boolean;
  readonly sendSecret: Uint8Array;
  readonly receiveSecret: Uint8Array;
  readonly keyBytes?: 16 | 32;
}

/** What has happened with the keys of an association, since there are any. */
export interface AssociationCounts {
  readonly sealed: number;
  readonly opened: number;
  /** Packets dropped because they had come before, or were too old to tell. */
  readonly replayed: number;
  /** Packets dropped because the peer has not sealed them as they are. */
  readonly forged: number;
  readonly rekeys: number;
}

export interface Protection {
  readonly mode: ProtectionMode;
  /**
   * Resolves when what the peer seals is opened. What goes to the peer is sealed from its first packet on, or from
   * {@link Protection.begin}.
   */
  associate(terms: AssociationTerms): Promise<void>;
  /** The peer is ready: what goes to it is sealed with these keys from now on. */
  begin(spi: number): void;
  /**
   * The connection to the peer ends: what goes there is sealed with the keys of another one, if there is one. What
   * comes is opened as before.
   */
  retire(spi: number): void;
  /** What has happened with the keys so far; undefined where there are none. */
  counts(spi: number): Promise<AssociationCounts | undefined>;
  /** What the peer still seals is dropped. */
  dissolve(spi: number): void;
}
