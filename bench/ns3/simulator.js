// @ts-check
/** Runs HPCC's ns-3 simulator, as build.js makes it, with the settings of its run.py. */

import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Virtual time of the first flow; the monitor of queues writes at multiples of 0.1 s. */
export const START_SECONDS = 2;
const HOST_PAYLOAD_BYTES = 1000;

/** @typedef {'none' | 'dcqcn' | 'timely' | 'dctcp' | 'hpcc'} Control */

/**
 * @typedef {object} Run
 * @property {Control} control
 * @property {number} gbps Rate of hosts.
 * @property {string} topology A file of the simulator.
 * @property {string} flows A file of the simulator.
 * @property {number} seconds Virtual time.
 * @property {number} bufferMib Memory of a switch.
 * @property {number} [monitorFrom] Seconds after the start: queues are counted from then on. By default never.
 * @property {readonly number[]} [traced] Nodes whose packets are written.
 */

/** A control's settings by run.py. @param {Control} control @param {number} gbps */
function settingsOf(control, gbps) {
  const common = {
    CC_MODE: 1,
    ENABLE_QCN: 1,
    RATE_AI: '10Mb/s',
    RATE_HAI: '10Mb/s',
    EWMA_GAIN: 0.00390625,
    HAS_WIN: 0,
    VAR_WIN: 0,
    FAST_REACT: 0,
    INT_MULTI: 1,
    DCTCP_RATE_AI: '1000Mb/s',
    ACK_HIGH_PRIO: 1,
  };
  switch (control) {
    case 'none':
      return { ...common, ENABLE_QCN: 0 };
    case 'dcqcn':
      return { ...common, RATE_AI: `${(5 * gbps) / 25}Mb/s`, RATE_HAI: `${(50 * gbps) / 25}Mb/s` };
    case 'timely':
      // run.py has a RATE_HAI of five times that, which this simulator also adds below Tlow; the paper does not.
      return { ...common, CC_MODE: 7, RATE_AI: `${gbps}Mb/s`, RATE_HAI: `${gbps}Mb/s` };
    case 'dctcp':
      return {
        ...common,
        CC_MODE: 8,
        EWMA_GAIN: 0.0625,
        HAS_WIN: 1,
        VAR_WIN: 1,
        DCTCP_RATE_AI: '615Mb/s',
        ACK_HIGH_PRIO: 0,
      };
    case 'hpcc': {
      const increase = `${(10 * gbps) / 25}Mb/s`;
      return {
        ...common,
        CC_MODE: 3,
        RATE_AI: increase,
        RATE_HAI: increase,
        HAS_WIN: 1,
        VAR_WIN: 1,
        FAST_REACT: 1,
        INT_MULTI: Math.floor(gbps / 25),
        ACK_HIGH_PRIO: 0,
      };
    }
  }
}

/** @param {Run} run @param {string} folder */
function configOf({ control, gbps, topology, flows, seconds, bufferMib, monitorFrom, traced }, folder) {
  const rates = [gbps, 4 * gbps];
  /** @param {(rate: number) => number} value */
  const map = (value) => `${rates.length} ${rates.map((rate) => `${rate * 1e9} ${value(rate)}`).join(' ')}`;
  const isStep = control === 'dctcp';
  const ns = (/** @type {number} */ s) => Math.round((START_SECONDS + s) * 1e9);
  const monitored = monitorFrom ?? seconds + 1;
  return {
    USE_DYNAMIC_PFC_THRESHOLD: 1,
    PACKET_PAYLOAD_SIZE: HOST_PAYLOAD_BYTES,
    TOPOLOGY_FILE: topology,
    FLOW_FILE: flows,
    TRACE_FILE: join(folder, 'traced.txt'),
    TRACE_OUTPUT_FILE: join(folder, 'trace.bin'),
    FCT_OUTPUT_FILE: join(folder, 'completions.txt'),
    PFC_OUTPUT_FILE: join(folder, 'pauses.txt'),
    // Past the end, so that the monitor writes at the end.
    SIMULATOR_STOP_TIME: (START_SECONDS + seconds + 1e-7).toFixed(9),
    ...settingsOf(control, gbps),
    ALPHA_RESUME_INTERVAL: 1,
    RATE_DECREASE_INTERVAL: 4,
    CLAMP_TARGET_RATE: 0,
    RP_TIMER: 300,
    FAST_RECOVERY_TIMES: 1,
    // run.py has 1000, which ten flows at 10 Gb/s cannot keep; this is the default of the simulator.
    MIN_RATE: '100Mb/s',
    ERROR_RATE_PER_LINK: 0,
    L2_CHUNK_SIZE: 4000,
    // Every packet is acknowledged, whatever this value is: the simulator resets its count with each packet.
    L2_ACK_INTERVAL: 1,
    L2_BACK_TO_ZERO: 0,
    GLOBAL_T: 1,
    U_TARGET: 0.95,
    MI_THRESH: 0,
    MULTI_RATE: 0,
    SAMPLE_FEEDBACK: 0,
    PINT_LOG_BASE: 1.05,
    PINT_PROB: 1,
    RATE_BOUND: 1,
    LINK_DOWN: '0 0 0',
    ENABLE_TRACE: traced === undefined ? 0 : 1,
    KMAX_MAP: map((rate) => Math.floor(isStep ? 3 * rate : 16 * rate)),
    KMIN_MAP: map((rate) => Math.floor(isStep ? 3 * rate : 4 * rate)),
    PMAX_MAP: map(() => (isStep ? 1 : 0.2)),
    BUFFER_SIZE: bufferMib,
    QLEN_MON_FILE: join(folder, 'queues.txt'),
    QLEN_MON_START: ns(monitored),
    QLEN_MON_END: ns(monitorFrom === undefined ? monitored : seconds),
  };
}

/** Runs in `folder`, whose files it replaces. Seconds are those of the processor. @param {string} program @param {Run} run @param {string} folder */
export async function simulate(program, run, folder) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'traced.txt'), `${run.traced?.length ?? 0}\n${run.traced?.join(' ') ?? ''}\n`);
  const config = join(folder, 'config.txt');
  const lines = Object.entries(configOf(run, folder)).map(([name, value]) => `${name} ${value}`);
  writeFileSync(config, `${lines.join('\n')}\n`);
  const { stdout } = await promisify(execFile)(program, [config], { maxBuffer: 2 ** 28 });
  return { processorSeconds: Number(stdout.trim().split('\n').at(-1)), drops: stdout.match(/ Drop: /g)?.length ?? 0 };
}

/** Payload bytes by source node that node `receiver` got in [from, to), seconds after the start. @param {string} folder @param {number} from @param {number} to */
export function received(folder, from, to) {
  const bytes = readFileSync(join(folder, 'trace.bin'));
  // Behind the speeds of ports (11 bytes each) and the window.
  let at = 8 + 11 * bytes.readUInt32LE(0);
  const [RECEIVED, DATA, RECORD_BYTES] = [0, 0x11, 56];
  /** @type {Map<number, number>} */
  const payload = new Map();
  let frameBytes = 0;
  for (; at + RECORD_BYTES <= bytes.length; at += RECORD_BYTES) {
    const seconds = Number(bytes.readBigUInt64LE(at)) / 1e9 - START_SECONDS;
    if (bytes[at + 27] !== RECEIVED || bytes[at + 26] !== DATA || seconds < from || seconds >= to) continue;
    const source = (bytes.readUInt32LE(at + 16) >>> 8) & 0xffff;
    payload.set(source, (payload.get(source) ?? 0) + bytes.readUInt16LE(at + 32 + 18));
    frameBytes += bytes.readUInt16LE(at + 24);
  }
  return { payload, frameBytes };
}

/** How often a queue had so many thousand bytes, at interface `port` of node `node`. @param {string} folder @param {number} node @param {number} port */
export function queueCounts(folder, node, port) {
  const lines = readFileSync(join(folder, 'queues.txt'), 'utf8').split('\n');
  const line = lines.findLast((text) => text.startsWith(`${node} ${port} `));
  if (line === undefined) throw new Error(`no queue was counted at port ${port} of node ${node}`);
  return line.trim().split(' ').slice(2).map(Number);
}
