/** Types of answers about locks by which the shell tells what became of a request. */
export const UNLOCKED = 3;
export const INVALID_INPUT = 100;
export const DOES_NOT_EXIST = 102;
export const INVALID_OWNER = 103;
