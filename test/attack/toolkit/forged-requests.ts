/** REQs and SIDR_REQs of RDMA CM as a stranger forges them, and the datagram to QP1 that carries them. */

import { encodeIpPrivateData, tcpServiceId, udpServiceId } from '../../../src/cm/ip-addressing.js';
import { buildMad, type MessageFields } from '../../../src/cm/messages.js';
import { IpAddress } from '../../../src/packet/address.js';
import { type ForgedPath, type Forger, forgePacket } from './forged-packets.js';

const GSI = { opcode: 'UD SEND_ONLY', destQpn: 1, sourceQpn: 1, qkey: 0x8001_0000 } as const;

/** A REQ: who asks for which port, and fields that differ from those of an honest one. */
export interface ForgedRequest {
  /** The address that the REQ says it comes from. */
  readonly source: string;
  readonly destination: string;
  /** Of RDMA_PS_TCP, or of RDMA_PS_UDP. */
  readonly port: number;
  /** Differs between requests that are not repetitions. */
  readonly communicationId: number;
  readonly fields?: Partial<MessageFields<'REQ'>>;
}

/** A REQ of 256 bytes, as Linux would send it. */
export function forgedReq({ source, destination, port, communicationId, fields }: ForgedRequest): Uint8Array {
  const from = IpAddress.parse(source);
  const to = IpAddress.parse(destination);
  return buildMad('REQ', BigInt(communicationId) << 32n, {
    localCommId: communicationId,
    serviceId: tcpServiceId(port),
    localCaGuid: 0x0200_00ff_fe00_0001n,
    localQpn: 0x100 + (communicationId % 0xf00000),
    responderResources: 1,
    initiatorDepth: 1,
    remoteResponseTimeout: 20,
    localResponseTimeout: 20,
    startingPsn: communicationId & 0xffffff,
    retryCount: 7,
    rnrRetryCount: 7,
    maxCmRetries: 15,
    pkey: 0xffff,
    pathMtu: 3,
    primaryLocalLid: 0xffff,
    primaryRemoteLid: 0xffff,
    primaryLocalGid: from.gid,
    primaryRemoteGid: to.gid,
    primaryHopLimit: 64,
    primaryLocalAckTimeout: 17,
    privateData: encodeIpPrivateData({ source: from, destination: to, sourcePort: 50_000 }, new Uint8Array(0)),
    ...fields,
  });
}

/** A SIDR_REQ of 256 bytes, as Linux would send it. `communicationId` is its request ID. */
export function forgedSidrReq({ source, destination, port, communicationId }: ForgedRequest): Uint8Array {
  const endpoints = { source: IpAddress.parse(source), destination: IpAddress.parse(destination), sourcePort: 50_000 };
  return buildMad('SIDR_REQ', BigInt(communicationId) << 32n, {
    requestId: communicationId,
    pkey: 0xffff,
    serviceId: udpServiceId(port),
    privateData: encodeIpPrivateData(endpoints, new Uint8Array(0)),
  });
}

/** The timeouts of the worst REQ: local response timeout 31 and 15 retries are 39 hours. */
export const LONGEST_WAITS = {
  localResponseTimeout: 31,
  remoteResponseTimeout: 31,
  maxCmRetries: 15,
  primaryLocalAckTimeout: 31,
} as const;

/** A management datagram to QP1, BTH .. ICRC, for a wire that is simulated. */
export function forgeMad(path: ForgedPath, mad: Uint8Array): Uint8Array {
  return forgePacket(path, GSI, mad);
}

/** Sends a management datagram to QP1. */
export function sendMad(forger: Forger, mad: Uint8Array): Promise<void> {
  return forger.send(GSI, mad);
}
