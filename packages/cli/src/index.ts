/** The entry of @rocev2/cli. */

export { type LatencyNs, LatencySamples } from './transfer/samples.js';
