import { checkKind, checkObject, checkOneOf, checkOptions, checkWhole, type OptionNames } from '../core/arguments.js';
import {
  packRateControl,
  type RateControlOptions,
  type RateControlSettings,
  unpackRateControl,
} from '../dcqcn/rate-controls.js';
import { checkAttributes } from '../memory/ring/attribute-ranges.js';
import {
  type CommandResult,
  QP_ATTR_ACCESS_FLAGS,
  QP_ATTR_AV,
  QP_ATTR_DEST_QPN,
  QP_ATTR_EN_SQD_ASYNC_NOTIFY,
  QP_ATTR_INFLIGHT,
  QP_ATTR_MAX_DEST_RD_ATOMIC,
  QP_ATTR_MAX_QP_RD_ATOMIC,
  QP_ATTR_MIN_RNR_TIMER,
  QP_ATTR_PATH_MTU,
  QP_ATTR_PKEY_INDEX,
  QP_ATTR_PORT,
  QP_ATTR_QKEY,
  QP_ATTR_RATE_CONTROL,
  QP_ATTR_RECOVERY,
  QP_ATTR_REMOTE_SOURCE_PORT,
  QP_ATTR_RETRY_CNT,
  QP_ATTR_RNR_RETRY,
  QP_ATTR_RQ_PSN,
  QP_ATTR_SQ_PSN,
  QP_ATTR_STATE,
  QP_ATTR_TIMEOUT,
  QP_ATTR_TOTAL_TIMEOUT,
  type QpAttributes,
} from '../memory/ring/commands.js';
import {
  QP_STATE_NAMES,
  type QpStateName,
  SOURCE_PORT_ANY,
  SOURCE_PORT_FLOW,
  SOURCE_PORT_LEARN,
} from '../memory/ring/enums.js';
import { IpAddress } from '../packet/address.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import {
  packRecovery,
  type RecoveryOptions,
  type RecoverySettings,
  STANDARD_RECOVERY,
  unpackRecovery,
} from '../retransmit/recovery-schemes.js';

/** Address vector: where the peer is. */
export interface AddressVector {
  /** IP address of the peer, of the family of the device. */
  readonly address: IpAddress;
  /** UDP port the peer receives on; 4791 unless both ends agreed on another. */
  readonly udpPort?: number | undefined;
  /** 0..63, default 0. */
  readonly dscp?: number | undefined;
  /** ECN codepoint of sent packets: 0 (default) or 2, ECT(0). Ports that cannot set it send 0. */
  readonly ecn?: number | undefined;
}

/** The UDP source port of a peer, or the rule for it. */
export type RemoteSourcePort = number | 'flow' | 'learn' | 'any';

/**
 * `ibv_qp_attr`: what `modify` changes. Which are needed and allowed depends on the transition (IBTA vol. 1 table 91).
 */
export interface QpAttr {
  /** The state to go to. Default: stay. */
  readonly state?: QpStateName | undefined;
  /** With the move to SQD: raise SQ_DRAINED when work in progress has completed. Default false. */
  readonly enSqdAsyncNotify?: boolean | undefined;
  /** What the peer may do: flags of {@link Access}. */
  readonly accessFlags?: number | undefined;
  /** Index in the partition table: 0, the default partition. */
  readonly pkeyIndex?: number | undefined;
  /** Port of the device, from 1: 1. */
  readonly port?: number | undefined;
  /** UD: Q_Key of datagrams that are accepted, 32 bits. */
  readonly qkey?: number | undefined;
  /** Where the peer is. */
  readonly av?: AddressVector | undefined;
  /** Bytes: 256, 512, 1024, 2048 or 4096; the same at both ends. */
  readonly pathMtu?: number | undefined;
  /** QPN of the peer, 1 to 2^24 - 1. */
  readonly destQpn?: number | undefined;
  /** PSN of the first request that is expected, 24 bits: the peer's `sqPsn`. */
  readonly rqPsn?: number | undefined;
  /** PSN of the first request that is sent, 24 bits. */
  readonly sqPsn?: number | undefined;
  /** READs and atomics this side answers at a time, 0..128. */
  readonly maxDestRdAtomic?: number | undefined;
  /** READs and atomics this side has outstanding, 0..128; not more than the peer answers. */
  readonly maxRdAtomic?: number | undefined;
  /** RNR NAK timer code, 0..31 (12: 0.64 ms; 0: 655 ms). */
  readonly minRnrTimer?: number | undefined;
  /** Local ACK timeout, 4.096 us x 2^timeout, 0..31; 0: never. */
  readonly timeout?: number | undefined;
  /**
   * Total retransmission timeout, 4.096 us x 2^totalTimeout, 0..31: how long the peer may be silent before the queue
   * pair gives up. While the peer is silent the ACK timeout doubles, up to a sixteenth of it, and `retryCnt` counts
   * sequence NAKs only. 0, the default: `retryCnt` also counts timeouts, and all have one length (IBTA §9.7.6.1.3).
   * It may change while the queue pair is connected.
   */
  readonly totalTimeout?: number | undefined;
  /** Timeouts and sequence NAKs before the queue pair gives up, 0..7. */
  readonly retryCnt?: number | undefined;
  /** RNR NAKs before the queue pair gives up, 0..7; 7 means no limit. */
  readonly rnrRetry?: number | undefined;
  /** How losses are recovered; both ends must agree. Other stacks support only go-back-n, the default. */
  readonly recovery?: RecoveryOptions | undefined;
  /** Packets that the peer's socket can hold; the QPs to one socket share it fairly. Default 128. */
  readonly inflightPackets?: number | undefined;
  /**
   * The UDP source port of the peer; packets from another one are dropped (`rx_drop_source_port`). A number: that port,
   * 0..65535. `flow`: the one that follows from both QPNs. `learn` (default): that of the first packet that advances
   * the connection. `any`: not checked, for peers that use several ports, or a NAT that may change them.
   * Setting it again, or `av`, discards what was learned.
   */
  readonly remoteSourcePort?: RemoteSourcePort | undefined;
  /**
   * How fast this side sends data: a scheme, and those of its parameters that differ from the defaults. Default
   * `{name: 'none'}`.
   */
  readonly rateControl?: RateControlOptions | undefined;
}

/** The result of `query`. */
export interface QpInfo {
  /** The NIC's view; a queue pair may have gone to ERR on a failure. */
  readonly state: QpStateName;
  /** In SQD: work that has begun is not finished yet. */
  readonly sqDraining: boolean;
  /** What the peer may do: flags of {@link Access}. */
  readonly accessFlags: number;
  /** Bytes; 0 before RTR. */
  readonly pathMtu: number;
  /** QPN of the peer; 0 before RTR. */
  readonly destQpn: number;
  /** IP address of the peer. */
  readonly remote: IpAddress;
  /** The next PSN to be sent, 24 bits. */
  readonly sqPsn: number;
  /** The PSN that is expected next, 24 bits. */
  readonly rqPsn: number;
  /** Local ACK timeout, 4.096 us x 2^timeout; 0: never. */
  readonly timeout: number;
  /** Total retransmission timeout, 4.096 us x 2^totalTimeout; 0: retries are counted instead. */
  readonly totalTimeout: number;
  /** Timeouts and sequence NAKs before giving up, 0 to 7. */
  readonly retryCnt: number;
  /** RNR NAKs before giving up, 0 to 7; 7 means no limit. */
  readonly rnrRetry: number;
  /** READs and atomics this side has outstanding. */
  readonly maxRdAtomic: number;
  /** READs and atomics this side answers at a time. */
  readonly maxDestRdAtomic: number;
  /** The recovery scheme with all its parameters. */
  readonly recovery: RecoverySettings;
  /** UDP source port of the connection. */
  readonly sourcePort: number;
  /** UDP source port of the peer, announced or learned; `learn`: it is not known yet; `any`: it is not checked. */
  readonly remoteSourcePort: number | 'learn' | 'any';
  /** The rate control with all its parameters. */
  readonly rateControl: RateControlSettings;
  /** The rate at which data may leave now, bits/s of the link; Infinity: not limited. */
  readonly rateBps: number;
  /** The rate that recovery is heading for. */
  readonly targetRateBps: number;
  /** Bytes that the rate control allows in flight; Infinity: not limited. */
  readonly windowBytes: number;
  /** DCQCN's estimate of congestion, 0..1; NaN for other schemes. */
  readonly alpha: number;
}

const QP_ATTR: OptionNames<QpAttr> = {
  state: true,
  enSqdAsyncNotify: true,
  accessFlags: true,
  pkeyIndex: true,
  port: true,
  qkey: true,
  av: true,
  pathMtu: true,
  destQpn: true,
  rqPsn: true,
  sqPsn: true,
  maxDestRdAtomic: true,
  maxRdAtomic: true,
  minRnrTimer: true,
  timeout: true,
  totalTimeout: true,
  retryCnt: true,
  rnrRetry: true,
  recovery: true,
  inflightPackets: true,
  remoteSourcePort: true,
  rateControl: true,
};
const ADDRESS_VECTOR: OptionNames<AddressVector> = { address: true, udpPort: true, dscp: true, ecn: true };
const DATAGRAM_OPTIONS: OptionNames<Pick<AddressVector, 'udpPort' | 'dscp'>> = { udpPort: true, dscp: true };

/** What is given is taken as it is: {@link checkAttributes} refuses what is no number, `null` as well. */
function numberOf(value: number | undefined): number {
  return value === undefined ? 0 : value;
}

function flagOf(value: boolean | undefined): number {
  return typeof value === 'boolean' ? Number(value) : numberOf(value);
}

function checkAddressVector(av: AddressVector): void {
  checkObject('av', av, 'an object: {address, udpPort, dscp, ecn}');
  checkOptions('av', av, ADDRESS_VECTOR);
  checkKind('av.address', av.address, av.address instanceof IpAddress, 'an IpAddress');
}

export function encodeDatagramAddress(address: IpAddress, options: Pick<AddressVector, 'udpPort' | 'dscp'>) {
  checkObject('what follows the address', options, 'an object: {udpPort, dscp}');
  checkOptions('createAh', options, DATAGRAM_OPTIONS);
  const { udpPort, dscp } = options;
  checkKind('address', address, address instanceof IpAddress, 'an IpAddress');
  const values = { remoteGid: address.gid, remoteUdpPort: numberOf(udpPort), dscp: numberOf(dscp) };
  checkAttributes({ ...values, ecn: 0 }, QP_ATTR_AV);
  return values;
}

export function encodeAttributes(attr: QpAttr): { mask: number; values: QpAttributes } {
  checkObject('what modify() changes', attr, 'an object with attributes');
  checkOptions('modify', attr, QP_ATTR);
  if (attr.av !== undefined) checkAddressVector(attr.av);
  const bits: ReadonlyArray<readonly [given: unknown, bit: number]> = [
    [attr.state, QP_ATTR_STATE],
    [attr.enSqdAsyncNotify, QP_ATTR_EN_SQD_ASYNC_NOTIFY],
    [attr.accessFlags, QP_ATTR_ACCESS_FLAGS],
    [attr.pkeyIndex, QP_ATTR_PKEY_INDEX],
    [attr.port, QP_ATTR_PORT],
    [attr.qkey, QP_ATTR_QKEY],
    [attr.av, QP_ATTR_AV],
    [attr.pathMtu, QP_ATTR_PATH_MTU],
    [attr.destQpn, QP_ATTR_DEST_QPN],
    [attr.rqPsn, QP_ATTR_RQ_PSN],
    [attr.sqPsn, QP_ATTR_SQ_PSN],
    [attr.maxDestRdAtomic, QP_ATTR_MAX_DEST_RD_ATOMIC],
    [attr.maxRdAtomic, QP_ATTR_MAX_QP_RD_ATOMIC],
    [attr.minRnrTimer, QP_ATTR_MIN_RNR_TIMER],
    [attr.timeout, QP_ATTR_TIMEOUT],
    [attr.totalTimeout, QP_ATTR_TOTAL_TIMEOUT],
    [attr.retryCnt, QP_ATTR_RETRY_CNT],
    [attr.rnrRetry, QP_ATTR_RNR_RETRY],
    [attr.recovery, QP_ATTR_RECOVERY],
    [attr.inflightPackets, QP_ATTR_INFLIGHT],
    [attr.remoteSourcePort, QP_ATTR_REMOTE_SOURCE_PORT],
    [attr.rateControl, QP_ATTR_RATE_CONTROL],
  ];
  let mask = 0;
  for (const [given, bit] of bits) if (given !== undefined) mask |= bit;
  const recovery = packRecovery(attr.recovery === undefined ? STANDARD_RECOVERY : attr.recovery);
  const rateControl = packRateControl(attr.rateControl === undefined ? { name: 'none' } : attr.rateControl);
  const values: QpAttributes = {
    state: attr.state === undefined ? 0 : checkOneOf('state', attr.state, QP_STATE_NAMES),
    curState: 0,
    enSqdAsyncNotify: flagOf(attr.enSqdAsyncNotify),
    accessFlags: numberOf(attr.accessFlags),
    pkeyIndex: numberOf(attr.pkeyIndex),
    port: numberOf(attr.port),
    qkey: numberOf(attr.qkey),
    remoteGid: attr.av?.address.gid ?? new Uint8Array(16),
    remoteUdpPort: numberOf(attr.av?.udpPort),
    dscp: numberOf(attr.av?.dscp),
    ecn: numberOf(attr.av?.ecn),
    pathMtu: attr.pathMtu === undefined ? 0 : 1 + checkOneOf<number>('pathMtu', attr.pathMtu, PATH_MTUS),
    timeout: numberOf(attr.timeout),
    totalTimeout: numberOf(attr.totalTimeout),
    retryCnt: numberOf(attr.retryCnt),
    rnrRetry: numberOf(attr.rnrRetry),
    rqPsn: numberOf(attr.rqPsn),
    maxRdAtomic: numberOf(attr.maxRdAtomic),
    minRnrTimer: numberOf(attr.minRnrTimer),
    sqPsn: numberOf(attr.sqPsn),
    maxDestRdAtomic: numberOf(attr.maxDestRdAtomic),
    destQpn: numberOf(attr.destQpn),
    recovery: recovery.name,
    recoveryParameters: recovery.block,
    inflightPackets: numberOf(attr.inflightPackets),
    remoteSourcePort: encodeSourcePort(attr.remoteSourcePort),
    rateControl: rateControl.name,
    rateParameters: rateControl.block,
  };
  checkAttributes(values, mask);
  return { mask, values };
}

const SOURCE_PORT_RULES = { learn: SOURCE_PORT_LEARN, any: SOURCE_PORT_ANY, flow: SOURCE_PORT_FLOW } as const;

function encodeSourcePort(wanted: RemoteSourcePort | undefined): number {
  if (wanted === undefined) return SOURCE_PORT_LEARN;
  if (typeof wanted === 'string') {
    const names = Object.keys(SOURCE_PORT_RULES) as (keyof typeof SOURCE_PORT_RULES)[];
    return SOURCE_PORT_RULES[names[checkOneOf('remoteSourcePort', wanted, names)]];
  }
  return checkWhole('remoteSourcePort', wanted, 0, 0xffff);
}

function decodeSourcePort(port: number): number | 'learn' | 'any' {
  if (port === SOURCE_PORT_LEARN) return 'learn';
  return port === SOURCE_PORT_ANY ? 'any' : port;
}

export function decodeAttributes(values: CommandResult<'queryQp'>): QpInfo {
  return {
    state: QP_STATE_NAMES[values.state],
    sqDraining: values.sqDraining !== 0,
    accessFlags: values.accessFlags,
    pathMtu: values.pathMtu === 0 ? 0 : PATH_MTUS[values.pathMtu - 1],
    destQpn: values.destQpn,
    remote: IpAddress.fromBytes(values.remoteGid),
    sqPsn: values.sqPsn,
    rqPsn: values.rqPsn,
    timeout: values.timeout,
    totalTimeout: values.totalTimeout,
    retryCnt: values.retryCnt,
    rnrRetry: values.rnrRetry,
    maxRdAtomic: values.maxRdAtomic,
    maxDestRdAtomic: values.maxDestRdAtomic,
    recovery: unpackRecovery(values.recovery, values.recoveryParameters),
    sourcePort: values.sourcePort,
    remoteSourcePort: decodeSourcePort(values.remoteSourcePort),
    rateControl: unpackRateControl(values.rateControl, values.rateParameters),
    rateBps: values.rateBps,
    targetRateBps: values.targetRateBps,
    windowBytes: values.windowBytes,
    alpha: values.alpha,
  };
}
