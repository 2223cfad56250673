import { refuseEchoes } from '../dcqcn/rate-controls.js';
import { STANDARD_RECOVERY } from '../retransmit/recovery-schemes.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { CmConnection } from './cm-connection.js';
import { Connection } from './connection.js';
import { discard, type MadeParts, postReceives } from './connection-parts.js';
import type { ControlChannel } from './control-channel.js';
import type { ControlConnection } from './control-connection.js';
import type { Agreement, exchangeAsClient } from './exchange.js';
import { initializeQp } from './qp-parameters.js';
import { decodeRegion, encodeRegion } from './region-data.js';

export async function setUpOverChannel(
  [parts, exchangeOptions]: MadeParts,
  channel: ControlChannel,
  exchange: typeof exchangeAsClient,
  onClosed?: () => void,
): Promise<Connection> {
  try {
    const agreement = await exchange(channel, exchangeOptions);
    postReceives(parts);
    return Connection.over(parts, controlOverTcp(channel), agreement, onClosed);
  } catch (error) {
    channel.close();
    await discard(parts);
    throw error;
  }
}

function controlOverTcp(channel: ControlChannel): ControlConnection {
  return {
    get isOpen() {
      return channel.isOpen;
    },
    ended: channel.closed,
    close: async () => channel.close(),
  };
}

export async function setUpThroughManager(
  [parts, { region, rateControl, totalTimeout }]: MadeParts,
  connectQp: (qp: QueuePair, privateData: Uint8Array) => Promise<CmConnection>,
  onClosed?: () => void,
): Promise<Connection> {
  try {
    await initializeQp(parts.qp);
    postReceives(parts);
    if (rateControl !== undefined) refuseEchoes(rateControl);
    const cm = await connectQp(parts.qp, encodeRegion(region));
    if (rateControl !== undefined) await parts.qp.modify({ rateControl });
    if (totalTimeout !== undefined) await parts.qp.modify({ totalTimeout });
    const agreement: Agreement = {
      peer: cm.remote,
      remoteQpn: (await parts.qp.query()).destQpn,
      mtu: cm.pathMtu,
      recovery: STANDARD_RECOVERY,
      sharesMemory: false,
      mapsRegion: false,
      region: decodeRegion(cm.privateData),
      messageBytesMax: undefined,
      purpose: {},
      destination: {},
    };
    return Connection.over(parts, controlThroughManager(cm), agreement, onClosed);
  } catch (error) {
    await discard(parts);
    throw error;
  }
}

function controlThroughManager(cm: CmConnection): ControlConnection {
  let isOpen = true;
  void cm.disconnected.then(() => {
    isOpen = false;
  });
  return {
    get isOpen() {
      return isOpen;
    },
    ended: cm.disconnected,
    close: () => cm.disconnect(),
  };
}
