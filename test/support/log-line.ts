/** Beginning of a line on standard error for a regular expression with the flag `m`: a server that is ready writes time and level first. */
export const LINE_START = String.raw`^(?:\S+Z \w+ )?`;
