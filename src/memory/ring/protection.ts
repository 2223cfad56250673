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

/** Counters of the keys of an association, since the first one. */
export interface AssociationCounts {
  readonly sealed: number;
  readonly opened: number;
  /** Packets dropped because they were repeated, or too old to be checked. */
  readonly replayed: number;
  /** Packets dropped because they are not authentic. */
  readonly forged: number;
  readonly rekeys: number;
}

export interface Protection {
  readonly mode: ProtectionMode;
  /**
   * Resolves when packets of the peer can be opened. Packets to the peer are sealed from its first packet on, or from
   * {@link Protection.begin}.
   */
  associate(terms: AssociationTerms): Promise<void>;
  /** The peer is ready: packets to it are sealed with these keys from now on. */
  begin(spi: number): void;
  /**
   * The connection to the peer ends: packets to it are sealed with the keys of another connection, if there is one.
   * Received packets are opened as before.
   */
  retire(spi: number): void;
  /** Counters of the keys so far; undefined without keys. */
  counts(spi: number): Promise<AssociationCounts | undefined>;
  /** Packets that the peer still seals are dropped. */
  dissolve(spi: number): void;
}
