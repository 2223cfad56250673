// @ts-check
/**
 * One end of a measurement, in a process of its own: `node child.js ROLE TRANSPORT MEASURE OPTIONS`. Speaks JSON lines with the parent:
 *
 *   server: {ready: address}           then reads {hello}, says {connected}, reads {stop}, says its result
 *   client: {hello}                    then reads {go}, says its result
 *
 * Every result has `cpuSeconds`, user and system time of the whole process between {connected} or {go} and the result.
 */

import process from 'node:process';
import { jsonLines } from './lines.js';
import { measureChannel, serveChannel } from './message-channels.js';
import { measureRocev2, serveRocev2 } from './rocev2.js';

const [role, transport, measure, optionsText] = process.argv.slice(2);
const options = JSON.parse(optionsText);
const parent = jsonLines(process.stdin, process.stdout);

/** Seconds of processor time since `before`. */
function cpuSecondsSince(/** @type {NodeJS.CpuUsage} */ before) {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

const isOurs = transport === 'rocev2';
if (role === 'server') {
  const server = await (isOurs ? serveRocev2(measure, options) : serveChannel(transport, measure, options));
  parent.say({ ready: server.address });
  await server.meet((await parent.next()).hello);
  parent.say({ connected: true });
  const before = process.cpuUsage();
  await parent.next();
  parent.say({ ...server.result(), cpuSeconds: cpuSecondsSince(before) });
  await server.close();
} else {
  const client = await (isOurs ? measureRocev2(measure, options) : measureChannel(transport, measure, options));
  parent.say({ hello: client.hello });
  await parent.next();
  const before = process.cpuUsage();
  const result = await client.run();
  parent.say({ ...result, cpuSeconds: cpuSecondsSince(before) });
  await client.close();
}
process.exit();
