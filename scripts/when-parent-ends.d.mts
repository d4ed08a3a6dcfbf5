export function whenParentEnds(script: string, ...args: (string | number)[]): () => void;
