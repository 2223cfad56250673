import { formatBytes } from 'rocev2/internal/core';
import type { ControllerIdentity } from '../host/nvme-host.js';

const OPTIONAL_COMMANDS = [
  'compare',
  'write-uncorrectable',
  'dataset-management',
  'write-zeroes',
  'save and select features',
  'reservations',
  'timestamp',
  'verify',
  'copy',
];
const FREEZING_KELVIN = 273;

export function controllerLines(identity: ControllerIdentity): string[] {
  const { optionalCommands: bits } = identity;
  const commands = OPTIONAL_COMMANDS.filter((_, bit) => ((bits >>> bit) & 1) !== 0);
  const facts: ReadonlyArray<readonly [name: string, value: string]> = [
    ['NQN', identity.nqn],
    ['controller ID', `${identity.id}`],
    ['model', identity.model],
    ['serial number', identity.serial],
    ['firmware', identity.firmware],
    ['NVMe version', identity.version],
    ['largest transfer', sizeText(identity.transferBytesMax)],
    ['data in a capsule', sizeText(identity.inCapsuleBytes)],
    ['highest namespace', `${identity.nsidMax}`],
    ['write cache', identity.hasWriteCache ? 'volatile' : 'none'],
    ['optional commands', `${commands.join(', ') || 'none'} (0x${bits.toString(16)})`],
    ['warning temperature', temperatureText(identity.warningKelvin)],
    ['critical temperature', temperatureText(identity.criticalKelvin)],
  ];
  return facts.map(([name, value]) => `${name.padEnd(20)} ${value}`);
}

function sizeText(bytes: number): string {
  return `${formatBytes(bytes)} (${bytes} bytes)`;
}

function temperatureText(kelvin: number): string {
  return kelvin === 0 ? 'not reported' : `${kelvin - FREEZING_KELVIN} °C (${kelvin} K)`;
}
