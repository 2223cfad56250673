/**
 * `rocev2/engine-thread`: the thread of a worker engine: a port and a NIC on memory shared with the application's
 * thread. It serves the peer's operations even while the application is busy. Programs do not import it; bundlers make
 * a file of it (docs/how-to/deploy.md).
 *
 * @module rocev2/engine-thread
 */

import { parentPort, workerData } from 'node:worker_threads';
import { RoceError, serializeError } from '../../core/errors.js';
import { copyableView } from '../../dgram-ext/copyable-view.js';
import { CommandRing } from '../../memory/ring/command-ring.js';
import { DoorbellRing } from '../../memory/ring/doorbell-ring.js';
import { EventRing } from '../../memory/ring/event-ring.js';
import { Nic } from '../../nic/nic.js';
import { IpAddress } from '../../packet/address.js';
import { EventLoopPoller, type PollHooks } from '../event-loop-poller.js';
import { loadExtensions } from '../extensions.js';
import { FRAME_PORTS } from '../frame-port-loader.js';
import * as framePorts from '../frame-ports.js';
import * as instruments from '../instrument-parts.js';
import { INSTRUMENTS } from '../instruments-loader.js';
import { type OpenPort, openPort } from '../open-port.js';
import { SECURE_PORTS } from '../secure-loader.js';
import * as securePorts from '../secure-ports.js';
import { SHARED_MEMORY_PORTS } from '../shm-loader.js';
import * as sharedMemoryPorts from '../shm-ports.js';
import { nowNs } from '../system-clock.js';
import { systemRandom } from '../system-random.js';
import { IdlePolicy } from './idle-policy.js';
import { Interrupts } from './interrupts.js';
import { ENGINE_THREAD, type FromThread, type ThreadData, type ToThread } from './thread-messages.js';
import { ThreadPoller } from './thread-poller.js';

const data = workerData as ThreadData;
if (data?.role !== ENGINE_THREAD) {
  throw new RoceError(
    'ERR_ROCE_INVALID_STATE',
    'rocev2/engine-thread is the thread of a NIC, which openDevice starts',
    'name its file to openDevice by workerUrl; do not import it',
  );
}
const application = parentPort!;
// A bundler makes one file of this thread.
FRAME_PORTS.provide(framePorts);
SHARED_MEMORY_PORTS.provide(sharedMemoryPorts);
SECURE_PORTS.provide(securePorts);
INSTRUMENTS.provide(instruments);

function say(message: FromThread): void {
  application.postMessage(message);
}

function run(opened: OpenPort): void {
  const { port, batched } = opened;
  const control = new Int32Array(data.control);
  const commands = new CommandRing(data.commands);
  const memory = new Map<number, SharedArrayBuffer>();
  const counters = new Float64Array(data.counters);
  const interrupts = new Interrupts(control, counters);
  const nic = new Nic({
    port,
    random: systemRandom(),
    counters,
    events: new EventRing(data.events),
    memory: (id) => memory.get(id),
    regionMemory: (id) => {
      const shared = memory.get(id);
      return shared === undefined ? undefined : copyableView(shared);
    },
    tuning: opened.tuning,
    onEvent: () => interrupts.raise(),
  });
  opened.countInto(counters);
  opened.trace?.watch({ counters, visitRates: (visit) => nic.visitRates(nowNs(), visit) });
  const idle = new IdlePolicy(nic, control, new DoorbellRing(data.doorbells), new Int32Array(data.spinner), data.spin);
  const hooks: PollHooks = {
    begin: () => {
      interrupts.deliver();
      return idle.begin();
    },
    mayBlock: (nowNs, worked) => {
      interrupts.deliver();
      return idle.mayBlock(nowNs, worked);
    },
  };
  const poller =
    batched === undefined ? new EventLoopPoller(nic, port, hooks) : new ThreadPoller(nic, port, batched, hooks);

  application.on('message', async (message: ToThread) => {
    switch (message.type) {
      case 'attach':
        memory.set(message.id, message.memory);
        return;
      case 'detach':
        memory.delete(message.id);
        return;
      case 'commands':
        nic.executeCommands(commands, nowNs(), message.end);
        interrupts.deliver();
        break;
      case 'associate':
        await opened.protection!.associate(message.terms).then(
          () => say({ type: 'associated', request: message.request }),
          (error) => say({ type: 'refused', request: message.request, error: serializeError(error) }),
        );
        return;
      case 'counts':
        say({ type: 'counted', request: message.request, counts: await opened.protection!.counts(message.spi) });
        return;
      case 'begin':
      case 'retire':
      case 'dissolve':
        opened.protection![message.type](message.spi);
        return;
      case 'resolve':
        await opened.resolve(IpAddress.parse(message.address), message.sharingPort).then(
          (shares) => say({ type: 'resolved', request: message.request, shares }),
          (error) => say({ type: 'refused', request: message.request, error: serializeError(error) }),
        );
        return;
      case 'unshare':
        opened.unshare(IpAddress.parse(message.address), message.udpPort);
        break;
      case 'close':
        poller.close();
        idle.close();
        await opened.close();
        say({ type: 'closed' });
        application.close();
        return;
      case 'wake':
        break;
    }
    if (poller instanceof EventLoopPoller) poller.pollSoon();
  });
  say({
    type: 'ready',
    portDescription: opened.description,
    wakeFd: batched?.wakeFd ?? -1,
    udpPort: port.udpPort,
    memoryDomain: opened.memoryDomain,
    mapsMemory: opened.mapping !== undefined,
  });
}

async function start(): Promise<void> {
  await loadExtensions(data.extensions);
  run(await openPort(data.port, 'polled'));
}

start().catch((error) => say({ type: 'failed', error: serializeError(error) })); // CommonJS bundles cannot await here.
