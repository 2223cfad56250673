// @ts-check
/** The measurements over anything that carries messages both ways: bulk and small messages one way, round trips. */

import { crc32 } from 'node:zlib';
import { percentiles } from './percentiles.js';
import { phasesOf } from './phases.js';

/** Unreliable datagrams have a measurement of their own. */
const BLAST_BYTES = 4112;
const BLAST_PER_TURN = 64;

/** @typedef {{messageBytes: number, messages: number, warmUp: number, settling?: number, seconds: number}} ChannelOptions */
/** @typedef {(phase: import('./phases.js').PhaseName) => void} Begin */

/**
 * @param {string} transport
 * @param {string} measure
 * @param {ChannelOptions} options
 */
export async function serveChannel(transport, measure, options) {
  const { listen } = await import(`./transports/${transport}.js`);
  const target = Buffer.alloc(options.messageBytes);
  let messages = 0;
  let bytes = 0;
  // The sender waits for an answer at the end of each phase.
  const ends = measure === 'oneWay' ? endsOfPhases(options) : [];
  let firstMs = 0;
  let lastMs = 0;
  const onChannel = (/** @type {import('./transports/framed-stream.js').Channel} */ channel) => {
    channel.onMessage = (message) => {
      if (message.length === 0) return;
      if (measure === 'roundTrip') {
        // A copy: some transports use the buffer again before they have sent it.
        channel.send(Buffer.from(message));
        return;
      }
      lastMs = performance.now();
      if (messages === 0) firstMs = lastMs;
      bytes += message.length;
      messages++;
      if (!ends.includes(messages)) return;
      message.copy(target);
      channel.send(Buffer.alloc(1, 1));
    };
  };
  const address = await listen(onChannel, options.messageBytes);
  return {
    address: address.port ?? address,
    meet: (/** @type {unknown} */ hello) => address.meet?.(hello),
    close: async () => {},
    result: () => ({ bytes, seconds: (lastMs - firstMs) / 1000, crc: crc32(target) }),
  };
}

/** How many messages have come when each phase ends. @param {ChannelOptions} options */
function endsOfPhases(options) {
  let end = 0;
  return phasesOf(options).map(({ messages }) => (end += messages));
}

/**
 * @param {string} transport
 * @param {string} measure
 * @param {ChannelOptions & {address: any}} options
 */
export async function measureChannel(transport, measure, options) {
  const { connect } = await import(`./transports/${transport}.js`);
  const channel = await connect(
    transport === 'udx' ? { port: options.address } : options.address,
    options.messageBytes,
  );
  const run = { oneWay, roundTrip, blast }[measure];
  if (run === undefined) throw new Error(`${transport} has no ${measure}`);
  return {
    hello: channel.hello ?? null,
    run: (/** @type {Begin} */ begin) => run(channel, options, begin),
    close: async () => {},
  };
}

/** @param {import('./transports/framed-stream.js').Channel} channel @param {ChannelOptions} options @param {Begin} begin */
async function oneWay(channel, options, begin) {
  const { messageBytes, messages, warmUp } = options;
  const message = Buffer.alloc(messageBytes, 7);
  const sendAll = async (/** @type {number} */ count) => {
    const done = new Promise((resolve) => {
      channel.onMessage = resolve;
    });
    for (let i = 0; i < count; i++) {
      const wait = channel.send(message);
      if (wait !== undefined) await wait;
      // Streams that never say "wait" would keep the loop for themselves.
      else if ((i & 0xff) === 0xff) await new Promise(setImmediate);
    }
    await done;
  };
  for (const { name, messages: count } of phasesOf(options)) {
    begin(name);
    await sendAll(count);
  }
  return { messages, warmUp, messageBytes, crc: crc32(message) };
}

/** @param {import('./transports/framed-stream.js').Channel} channel @param {ChannelOptions} options */
async function roundTrip(channel, { messageBytes, messages, warmUp }) {
  const message = Buffer.alloc(messageBytes, 7);
  /** @type {() => void} */
  let answered = () => {};
  channel.onMessage = () => answered();
  const samplesUs = [];
  for (let i = 0; i < messages + warmUp; i++) {
    const startMs = performance.now();
    await new Promise((/** @type {(value: void) => void} */ resolve) => {
      answered = resolve;
      channel.send(message);
    });
    if (i >= warmUp) samplesUs.push((performance.now() - startMs) * 1000);
  }
  return { latencyUs: percentiles(samplesUs) };
}

/** @param {import('./transports/framed-stream.js').Channel} channel @param {ChannelOptions} options */
function blast(channel, { seconds }) {
  const slots = Array.from({ length: BLAST_PER_TURN }, (_, i) => Buffer.alloc(BLAST_BYTES, i));
  const endMs = performance.now() + seconds * 1000;
  return new Promise((resolve) => {
    const turn = () => {
      for (const slot of slots) channel.send(slot);
      if (performance.now() < endMs) setImmediate(turn);
      else setTimeout(() => resolve({}), 50); // What is on its way arrives.
    };
    turn();
  });
}
