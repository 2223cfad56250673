/** Which Node.js this program needs; package.json says the same to npm. */

const NEEDED = [20, 19] as const;

/** What to say to a Node.js of this version (`20.18.1`); undefined when it will do. */
export function complaintAboutNode(version: string): string | undefined {
  const [major, minor] = version.split('.').map(Number);
  if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) return undefined;
  return `rocev2 needs Node.js ${NEEDED.join('.')} or newer, and this is ${version} (https://nodejs.org)`;
}
