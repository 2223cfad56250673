// @ts-check
/**
 * One end of a measurement, in a process of its own: `node child.js ROLE TRANSPORT MEASURE OPTIONS`. Speaks JSON lines with the parent:
 *
 *   server: {ready: address}           then reads {hello}, says {connected}, reads {stop}, says its result
 *   client: {hello}                    then reads {go}, says its result
 *   either: {failed: why}              instead, and ends
 *
 * Every result has `cpuSeconds`, user and system time of the whole process between {connected} or {go} and the result.
 */

import process from 'node:process';
import { jsonLines } from './lines.js';

const [role, transport, measure, optionsText] = process.argv.slice(2);
const options = JSON.parse(optionsText);
const parent = jsonLines(process.stdin, process.stdout);

/** Seconds of processor time since `before`. */
function cpuSecondsSince(/** @type {NodeJS.CpuUsage} */ before) {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

/** Ends with the reason, which is also an error that nobody has caught. */
function fail(/** @type {unknown} */ error) {
  parent.say({ failed: error instanceof Error ? error.message : String(error) });
  process.exit(1);
}
process.on('uncaughtException', fail);

/** The two ends of a transport. Only what is measured is loaded. */
async function endsOf(/** @type {string} */ name) {
  if (name === 'rocev2') {
    const { measureRocev2, serveRocev2 } = await import('./rocev2.js');
    return { serve: serveRocev2, client: measureRocev2 };
  }
  const { measureChannel, serveChannel } = await import('./message-channels.js');
  return {
    serve: (/** @type {string} */ what, /** @type {any} */ how) => serveChannel(name, what, how),
    client: (/** @type {string} */ what, /** @type {any} */ how) => measureChannel(name, what, how),
  };
}

async function main() {
  const ends = await endsOf(transport);
  if (role === 'server') {
    const server = await ends.serve(measure, options);
    parent.say({ ready: server.address });
    await server.meet((await parent.next()).hello);
    parent.say({ connected: true });
    const before = process.cpuUsage();
    await parent.next();
    parent.say({ ...server.result(), cpuSeconds: cpuSecondsSince(before) });
    await server.close();
  } else {
    const client = await ends.client(measure, options);
    parent.say({ hello: client.hello });
    await parent.next();
    const before = process.cpuUsage();
    const result = await client.run();
    parent.say({ ...result, cpuSeconds: cpuSecondsSince(before) });
    await client.close();
  }
}

await main().catch(fail);
process.exit();
