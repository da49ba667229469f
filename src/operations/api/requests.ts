/**
 * The door through which the front ends see this floor: data requests, answers, administration, and
 * the port that carries them. Types and constants only; nothing is defined here.
 */
export * from "./administration.js";
export * from "./answers.js";
export * from "./context.js";
export * from "./data-requests.js";
export * from "./kinds.js";
export * from "./port.js";
export * from "./watching/watches.js";
