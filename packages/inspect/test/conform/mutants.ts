/** Faults that are put into our own engine, one at a time. */

import { type Mutant, mutant } from './mutant.js';
import { REQUESTER_MUTANTS } from './requester-mutants.js';

const PATH = 'nic/receive-path.ts';
const PARSER = 'packet/roce.ts';
const RESPONDER = 'qp/responder.ts';
const READS = 'qp/read-responder.ts';
const REASSEMBLER = 'qp/reassembler.ts';
const ACKNOWLEDGER = 'qp/acknowledger.ts';
const KEYS = 'memory/key-table.ts';
const ATOMIC = 'qp/atomic.ts';
const CM = 'cm/passive-side.ts';

const PARSED = 'if (reason !== PARSE_OK) {';
const SEQUENCE = 'return continues ? this.#kind === info.kind : this.#kind === 0;';
const WHOLE = 'if (ends ? received + packet.payloadBytes !== total : received + packet.payloadBytes >= total) {';

/** All of them. */
export const MUTANTS: readonly Mutant[] = [
  mutant(12, 'takes a wrong ICRC', [PATH, 'if (verdict === ICRC_BAD) {', 'if (verdict < 0) {']),
  mutant(13, 'drops packets with FECN', [PATH, PARSED, 'if (reason !== PARSE_OK || packet.fecn) {']),
  mutant(13, 'drops packets with reserved bits', [PATH, PARSED, 'if (reason !== PARSE_OK || packet.resv6 !== 0) {']),
  mutant(13, 'drops packets with a DSCP', [PATH, PARSED, 'if (reason !== PARSE_OK || datagram.dscp !== 0) {']),
  mutant(13, 'drops packets with ECN', [PATH, PARSED, 'if (reason !== PARSE_OK || datagram.ecn !== 0) {']),
  mutant(
    14,
    'takes packets that are too short',
    [PARSER, 'if (paddedBytes < 0) return TOO_SHORT;', ''],
    [PARSER, 'if (padBytes > paddedBytes) return BAD_PAD;', ''],
  ),
  mutant(14, 'takes a pad of more bytes than there are', [PARSER, 'if (padBytes > paddedBytes) return BAD_PAD;', '']),
  mutant(
    15,
    'gives packets to QP 0 to the newest queue pair',
    [
      PATH,
      'this.#queuePairs.get(packet.destQpn)',
      '(this.#queuePairs.get(packet.destQpn) ?? [...this.#queuePairs.values()].at(-1))',
    ],
    [PATH, 'else if (!qp.carries(packet))', 'else if (packet.destQpn !== 0 && !qp.carries(packet))'],
  ),
  mutant(16, 'takes other transport versions', [PARSER, 'if ((flags & 0x0f) !== 0) return BAD_TVER;', '']),
  mutant(18, 'drops MigReq 0', [PATH, PARSED, 'if (reason !== PARSE_OK || (!packet.migReq && packet.destQpn > 1)) {']),
  mutant(18, 'drops MigReq 1', [PATH, PARSED, 'if (reason !== PARSE_OK || packet.migReq) {']),
  mutant(20, 'takes every P_Key', [PATH, '(packet.pkey & ALL_PARTITIONS) !== ALL_PARTITIONS', 'packet.pkey < 0']),
  mutant(20, 'drops limited members', [
    PATH,
    '(packet.pkey & ALL_PARTITIONS) !== ALL_PARTITIONS',
    'packet.pkey !== 0xffff',
  ]),
  mutant(21, 'takes packets of other transports', [PATH, '!qp.carries(packet)', 'packet.destQpn < 0']),
  mutant(22, 'takes a reserved opcode for a WRITE', [
    PARSER,
    'const info = OPCODES[opcode];\n  if (info',
    'const info = OPCODES[opcode] ?? OPCODES[opcode & 0x0a];\n  if (info',
  ]),
  mutant(24, 'begins a message inside another', [
    REASSEMBLER,
    SEQUENCE,
    'return continues ? this.#kind === info.kind : true;',
  ]),
  mutant(
    24,
    'goes on with a message that never began',
    [REASSEMBLER, SEQUENCE, 'return continues ? true : this.#kind === 0;'],
    [REASSEMBLER, WHOLE, 'if (total < 0) {'],
    [
      REASSEMBLER,
      'if (this.#receivedBytes + packet.payloadBytes > this.#sink.totalBytes) {',
      'if (this.#receivedBytes < 0) {',
    ],
    [
      REASSEMBLER,
      '} else if (!this.#sink.stillValid) return this.#refuse(NAK_REMOTE_OPERATION, STATUS_LOC_PROT_ERR);',
      '} else if (!this.isInMessage) return PLACED_LAST;',
    ],
  ),
  mutant(24, 'takes a READ inside a WRITE', [
    RESPONDER,
    'if (!this.#reassembler.isInSequence(packet))',
    'if (kind !== op.OP_READ_REQUEST && !this.#reassembler.isInSequence(packet))',
  ]),
  mutant(25, 'takes FIRST and MIDDLE of any length', [
    REASSEMBLER,
    'return packet.payloadBytes === mtu && packet.padBytes === 0;',
    'return true;',
  ]),
  mutant(25, 'puts all packets of a message to its start', [
    REASSEMBLER,
    'range.place(received, bytes',
    'range.place(0, bytes',
  ]),
  mutant(26, 'takes an empty LAST', [
    REASSEMBLER,
    'return packet.payloadBytes >= 1 && packet.payloadBytes <= mtu;',
    'return packet.payloadBytes <= mtu;',
  ]),
  mutant(26, 'takes a long LAST', [
    REASSEMBLER,
    'return packet.payloadBytes >= 1 && packet.payloadBytes <= mtu;',
    'return packet.payloadBytes >= 1;',
  ]),
  mutant(27, 'takes a long ONLY', [
    REASSEMBLER,
    'default:\n        return packet.payloadBytes <= mtu;',
    'default:\n        return true;',
  ]),
  mutant(28, 'takes WRITEs of any length', [
    REASSEMBLER,
    '(begins && packet.dmaLength > MESSAGE_BYTES_MAX)',
    'packet.dmaLength < 0',
  ]),
  mutant(28, 'takes READs of any length', [READS, ' || lengthBytes > MESSAGE_BYTES_MAX) {', ') {']),
  mutant(29, 'takes WRITEs that end early', [
    REASSEMBLER,
    'received + packet.payloadBytes !== total :',
    'received + packet.payloadBytes > total :',
  ]),
  mutant(29, 'takes WRITEs that end late', [
    REASSEMBLER,
    'received + packet.payloadBytes !== total :',
    'received + packet.payloadBytes < total :',
  ]),
  mutant(29, 'leaves out the last byte of a WRITE', [
    REASSEMBLER,
    'bytes, packet.payloadOffset, packet.payloadBytes',
    'bytes, packet.payloadOffset, packet.payloadBytes - 1',
  ]),
  mutant(36, 'takes an ACK for a request', ['qp/rc-transport.ts', 'return kind === OP_ACK || kind', 'return kind']),
  mutant(38, 'acknowledges only what it is not asked for', [
    RESPONDER,
    'if (packet.ackReq) this',
    'if (!packet.ackReq) this',
  ]),
  mutant(40, 'counts packets in place of messages', [
    RESPONDER,
    'if (verdict !== PLACED_LAST) return;\n    this.msn = psnAdd(this.msn, 1);',
    'this.msn = psnAdd(this.msn, 1);\n    if (verdict !== PLACED_LAST) return;',
  ]),
  mutant(42, 'executes duplicates of WRITEs', [
    RESPONDER,
    'if (distance < 0) {',
    'if (distance < 0 && packet.info.kind === op.OP_WRITE) {\n      this.#reassembler.endMessage();\n      this.#reassembler.place(packet, bytes);\n      this.#acknowledger.acknowledge();\n      this.#parts.scheduling.schedule();\n      return;\n    }\n    if (distance < 0) {',
  ]),
  mutant(42, 'takes a receive for a duplicate of a SEND', [
    RESPONDER,
    'if (distance < 0) {',
    'if (distance < 0 && packet.info.kind === op.OP_SEND && this.#reassembler.place(packet, bytes) === PLACED_LAST) this.#reassembler.complete(packet);\n    if (distance < 0) {',
  ]),
  mutant(
    43,
    'names the PSN of the duplicate',
    [
      RESPONDER,
      'else this.#acknowledger.acknowledge();\n    this.#parts',
      'else { this.#acknowledger.acknowledge(); this.#acknowledger.named = packet.psn; }\n    this.#parts',
    ],
    [ACKNOWLEDGER, '#fatalPsn = 0;', '#fatalPsn = 0;\n  named = -1;'],
    [
      ACKNOWLEDGER,
      'let psn = psnAdd(expectedPsn, -1);',
      'let psn = this.named >= 0 ? this.named : psnAdd(expectedPsn, -1);\n    this.named = -1;',
    ],
  ),
  mutant(44, 'says nothing of gaps', [RESPONDER, 'this.#acknowledger.reportGap();', '']),
  mutant(44, 'reports the first gap alone', [
    RESPONDER,
    '#gapFilled(): void {\n    this.#nakSent = false;',
    '#gapFilled(): void {',
  ]),
  mutant(45, 'reports a gap for each packet behind it', [RESPONDER, 'if (this.#nakSent) return;', '']),
  mutant(46, 'executes WRITEs behind a gap', [
    RESPONDER,
    'if (distance > 0) {',
    'if (distance > 0) {\n      if (packet.info.kind === op.OP_WRITE) this.#reassembler.place(packet, bytes);\n      this.#reassembler.endMessage();',
  ]),
  mutant(57, 'forgets the RNR timer', [ACKNOWLEDGER, 'SYNDROME_RNR | (attributes.minRnrTimer & 0x1f)', 'SYNDROME_RNR']),
  mutant(64, 'answers only whole READs again', [READS, 'return offset >= 0 &&', 'return offset === 0 &&']),
  mutant(65, 'answers no READ again', [
    READS,
    'if (packet.dmaLength > MESSAGE_BYTES_MAX) return expectedPsn;',
    'if (packet.dmaLength >= 0) return expectedPsn;',
  ]),
  mutant(65, 'answers READs of other places again', [
    READS,
    'if (record === undefined || !liesInside(packet, record))',
    'if (record === undefined)',
  ]),
  mutant(67, 'answers READs that were not agreed on', [
    READS,
    'this.#records = new ResponderRecords(maxDestRdAtomic);',
    'this.#records = new ResponderRecords(Math.max(1, maxDestRdAtomic));',
  ]),
  mutant(68, 'checks the key of an empty READ', [READS, 'if (lengthBytes > 0 && !resolve', 'if (!resolve']),
  mutant(68, 'checks the key of an empty WRITE', [REASSEMBLER, 'if (total > 0 && !resolve', 'if (!resolve']),
  mutant(69, 'is silent about a READ of 2^31 bytes', [
    READS,
    'const lengthBytes = packet.dmaLength;',
    'const lengthBytes = packet.dmaLength;\n    if (lengthBytes === 0x80000000) return 0;',
  ]),
  mutant(70, 'executes duplicates of atomics', [
    READS,
    'if (job !== undefined) this.#fillAtomicJob(job, record, msn);',
    'resolveRemote(this.#parts, packet, ATOMIC_BYTES, ACCESS_REMOTE_ATOMIC, this.#range);\n    readHostU64(this.#range, record);\n    executeAtomic(packet, this.#range, record);\n    if (job !== undefined) this.#fillAtomicJob(job, record, msn);',
  ]),
  mutant(71, 'executes an atomic again that it has forgotten', [
    READS,
    'const record = this.#records.find(RECORD_ATOMIC, packet.psn);\n    if (record === undefined) return;',
    'const record = this.#records.find(RECORD_ATOMIC, packet.psn);\n    if (record === undefined) {\n      this.#executeAtomic(packet, msn);\n      return;\n    }',
  ]),
  mutant(72, 'takes unaligned atomics', [READS, ' || (packet.vaLow & (ATOMIC_BYTES - 1)) !== 0) {', ') {']),
  mutant(112, 'takes unaligned ATOMIC WRITEs', [READS, 'if (!isWhole || !isAligned ||', 'if (!isWhole ||']),
  mutant(112, 'forgets what an ATOMIC WRITE carries', [
    READS,
    'if (parts.host.carriesPayload) placeAtomically(range, bytes, packet.payloadOffset);',
    '',
  ]),
  mutant(114, 'is silent about a repeated FLUSH or ATOMIC WRITE', [
    READS,
    'if (this.#records.find(RECORD_PLACEMENT, packet.psn) === undefined) return;',
    'return;',
  ]),
  mutant(115, 'takes a FLUSH without its right', [READS, '(feth & FETH_GLOBAL) === 0 ? 0 : ACCESS_FLUSH_GLOBAL', '0']),
  mutant(115, 'checks the range of a FLUSH for a whole region', [
    READS,
    'if (selectsRegion(packet.feth)) {',
    'if (packet.dmaLength < 0) {',
  ]),
  mutant(115, 'flushes beyond the region', [
    READS,
    'if (selectsRegion(packet.feth)) {',
    'if (packet.dmaLength >= 0) {',
  ]),
  mutant(73, 'forgets the carry', [ATOMIC, 'low > 0xffffffff ? 1 : 0', '0']),
  mutant(73, 'swaps without comparing', [ATOMIC, 'original.origLow === packet.compareLow', 'packet.compareLow >= 0']),
  mutant(74, 'takes any key', [
    KEYS,
    'const entry = this.#entries.get(key >>> 8);\n    if (entry === undefined || entry.key !== key) return MEMORY_BAD_KEY;',
    'const entry = this.#entries.get(key >>> 8) ?? [...this.#entries.values()].find((other) => other.pd === pd && other.lengthBytes >= 65536);\n    if (entry === undefined) return MEMORY_BAD_KEY;',
  ]),
  mutant(74, 'takes keys of other domains', [KEYS, 'if (entry.pd !== pd) return MEMORY_WRONG_PD;', '']),
  mutant(74, 'takes accesses without a right', [
    KEYS,
    'if ((entry.access & required) !== required) return MEMORY_NO_ACCESS;',
    '',
  ]),
  // Both guards: the second one, against memory that the program gave away, would stop what passes the first.
  mutant(
    74,
    'takes accesses that end behind the memory',
    [
      KEYS,
      'if (!fits(offset, lengthBytes, entry.lengthBytes))',
      'if (!fits(offset, Math.max(0, lengthBytes - 16), entry.lengthBytes))',
    ],
    [KEYS, 'if (offset + lengthBytes > bytes.length)', 'if (offset + lengthBytes - 16 > bytes.length)'],
  ),
  mutant(74, 'takes accesses that begin before the memory', [
    KEYS,
    'if (!fits(offset, lengthBytes, entry.lengthBytes))',
    'if (offset + lengthBytes > entry.lengthBytes)',
  ]),
  mutant(75, 'allows every WRITE', [
    REASSEMBLER,
    'if ((this.#parts.attributes.accessFlags & ACCESS_REMOTE_WRITE) === 0) {',
    'if (packet.dmaLength < 0) {',
  ]),
  mutant(75, 'allows every READ and atomic', [
    READS,
    'const allowed = (this.#parts.attributes.accessFlags & access) === access;',
    'const allowed = access !== 0;',
  ]),
  mutant(76, 'calls a long SEND an error of its own', [
    REASSEMBLER,
    'return this.#refuse(NAK_INVALID_REQUEST, STATUS_LOC_LEN_ERR);',
    'return this.#refuse(NAK_REMOTE_OPERATION, STATUS_LOC_LEN_ERR);',
  ]),
  mutant(
    77,
    'takes a receive for each WRITE',
    [REASSEMBLER, 'if ((headers & op.HDR_IMM) !== 0 && !this.receives.bind())', 'if (!this.receives.bind())'],
    [REASSEMBLER, 'if ((packet.info.headers & op.HDR_IMM) !== 0) {', 'if (packet.info.headers !== 0) {'],
  ),
  mutant(
    77,
    'takes no receive for immediate data',
    [REASSEMBLER, 'if ((headers & op.HDR_IMM) !== 0 && !this.receives.bind())', 'if (headers < 0)'],
    [REASSEMBLER, 'if ((packet.info.headers & op.HDR_IMM) !== 0) {', 'if (packet.info.headers < 0) {'],
  ),
  mutant(78, 'delivers the immediate data of a duplicate', [
    RESPONDER,
    'if (distance < 0) {',
    'if (distance < 0 && (packet.info.headers & op.HDR_IMM) !== 0 && this.#reassembler.place(packet, bytes) === PLACED_LAST) this.#reassembler.complete(packet);\n    if (distance < 0) {',
  ]),
  mutant(79, 'leaves a key alive that a SEND invalidates', [
    REASSEMBLER,
    '!host.keys.invalidate(packet.invalidateRkey, pd, qpn)',
    'packet.invalidateRkey < 0',
  ]),
  mutant(80, 'goes on after a fatal NAK', [
    RESPONDER,
    'this.#reassembler.receives.fail(receiveStatus);\n    this.#parts.lifecycle.enterError(true);',
    'this.#reassembler.receives.fail(receiveStatus);',
  ]),
  mutant(81, 'sends a fatal NAK before the answers that it owes', [
    RESPONDER,
    'const outcome = this.#reads.emit(batch, now);',
    'if (this.#acknowledger.isFatal) {\n      this.#acknowledger.emit(batch, this.expectedPsn, this.msn, this.#recovery);\n      return true;\n    }\n    const outcome = this.#reads.emit(batch, now);',
  ]),
  mutant(90, 'ends a queue pair for a CNP to nobody', [
    PATH,
    'if (qp === undefined) counters',
    'if (qp === undefined && packet.opcode === 0x81) this.#queuePairs.delete([...this.#queuePairs.keys()].filter((qpn) => qpn > 1).at(-1));\n    else if (qp === undefined) counters',
  ]),
  mutant(91, 'minds the LIDs', [
    CM,
    'if (fields.transportType !== TRANSPORT_RC)',
    'if (fields.transportType !== TRANSPORT_RC || fields.primaryLocalLid !== 0xffff)',
  ]),
  mutant(93, 'says a REP once', [
    CM,
    "else if (endpoint.state === 'REP_SENT') mads.send(endpoint, endpoint.unanswered, now);",
    '',
  ]),
  mutant(93, 'says a DREP once', ['cm/teardown.ts', 'if (!isOver && !mayEnd) {', 'if (isOver || !mayEnd) {']),
  mutant(94, 'gives a wrong reason where nobody listens', [CM, '? REJ_INVALID_SERVICE_ID', '? 5']),
  mutant(95, 'wants READs', [
    CM,
    'if (fields.transportType !== TRANSPORT_RC)',
    'if (fields.transportType !== TRANSPORT_RC || fields.initiatorDepth === 0)',
  ]),
  mutant(96, 'takes nothing before the RTU', [
    'qp/rc-transport.ts',
    'this.#parts.attributes.state === QPS_RTR);',
    'this.#parts.attributes.state < 0);',
  ]),
  mutant(97, 'takes a queue pair twice', [
    CM,
    'if (this.#teardown.replaceStale(source, fields)) return REJ_STALE_CONNECTION;',
    '',
  ]),
  mutant(103, 'drops in silence what is out of order', [
    RESPONDER,
    'if (!this.#reassembler.isInSequence(packet)) this.#fail(',
    'if (!this.#reassembler.isInSequence(packet)) return;\n    if (packet.psn < 0) this.#fail(',
  ]),
  mutant(104, 'gives a key to the first queue pair that uses it', [
    KEYS,
    'if (entry.pd !== pd) return MEMORY_WRONG_PD;',
    'if (entry.pd !== pd) return MEMORY_WRONG_PD;\n    const used = entry as unknown as { by?: number };\n    if (qpn >= 0 && (used.by ??= qpn) !== qpn) return MEMORY_WRONG_PD;',
  ]),
  mutant(107, 'takes packets in the order of arrival', [RESPONDER, 'if (distance > 0) {', 'if (distance > 1) {']),
  mutant(108, 'forgets a message when its FIRST comes twice', [
    RESPONDER,
    'this.#parts.host.counters[COUNTER.duplicate_request]++;',
    'this.#parts.host.counters[COUNTER.duplicate_request]++;\n    this.#reassembler.endMessage();',
  ]),
  ...REQUESTER_MUTANTS,
];
