//go:build !purego

#include "textflag.h"

// The compression function of FIPS 180-4 on two streams in turn, with the SHA
// instructions. Stream A has its state in X1 (words a, b, e, f) and X2 (c, d, g, h) and
// its last sixteen words of message schedule in X3 to X6; stream B in X7, X8 and X9 to
// X12. X0 is the operand that SHA256RNDS2 names by no name, X13 is scratch, X15 turns
// words from big-endian. "Group g" is rounds 4g to 4g+3.

// Group g of one stream; W holds its four words of schedule. The second of each pair of
// rounds takes the upper half of X0.
#define ROUNDS(g, W, S0, S1) \
	MOVOU       (16*g)(R8), X0 \
	PADDD       W, X0          \
	SHA256RNDS2 X0, S0, S1     \
	PSHUFD      $0x0e, X0, X0  \
	SHA256RNDS2 X0, S1, S0

// The first four groups take their words from the message.
#define LOAD(g, P, W) \
	MOVOU  (16*g)(P), W \
	PSHUFB X15, W

// With W0 prepared by MIX, and W1 to W3 the twelve words before, W0 becomes the four
// words that follow W3.
#define EXTEND(W0, W2, W3) \
	MOVO       W3, X13     \
	PALIGNR    $4, W2, X13 \
	PADDD      X13, W0     \
	SHA256MSG2 W3, W0

// The first half of extending: W0 plus the small sigma of the words one further.
#define MIX(W0, W1) SHA256MSG1 W1, W0

// Group g of both streams: W3 is used, W0 extended for the next group, W2 mixed.
#define GROUP(g, AW0, AW2, AW3, BW0, BW2, BW3) \
	ROUNDS(g, AW3, X1, X2)  \
	EXTEND(AW0, AW2, AW3)   \
	MIX(AW2, AW3)           \
	ROUNDS(g, BW3, X7, X8)  \
	EXTEND(BW0, BW2, BW3)   \
	MIX(BW2, BW3)

// State words a to h at P into the order of the instructions, and back.
#define UNPACK(P, S0, S1) \
	MOVOU   (P), X13        \
	MOVOU   16(P), S1       \
	PSHUFD  $0xb1, X13, X13 \
	PSHUFD  $0x1b, S1, S1   \
	MOVO    X13, S0         \
	PALIGNR $8, S1, S0      \
	PBLENDW $0xf0, X13, S1

#define PACK(P, S0, S1) \
	PSHUFD  $0x1b, S0, X13  \
	PSHUFD  $0xb1, S1, S1   \
	MOVO    X13, S0         \
	PBLENDW $0xf0, S1, X13  \
	PALIGNR $8, S0, S1      \
	MOVOU   X13, (P)        \
	MOVOU   S1, 16(P)

// Add the state from before the block.
#define ADD(off, S) \
	MOVOU off(SP), X13 \
	PADDD X13, S

// func blocks(a, b *[8]uint32, p, q *byte, n int, constants *[64]uint32)
TEXT ·blocks(SB), NOSPLIT, $64-48
	MOVQ a+0(FP), DI
	MOVQ b+8(FP), R9
	MOVQ p+16(FP), SI
	MOVQ q+24(FP), DX
	MOVQ n+32(FP), CX
	MOVQ constants+40(FP), R8

	MOVOU swap<>(SB), X15
	UNPACK(DI, X1, X2)
	UNPACK(R9, X7, X8)
	TESTQ CX, CX
	JZ    done

loop:
	MOVOU X1, 0(SP)
	MOVOU X2, 16(SP)
	MOVOU X7, 32(SP)
	MOVOU X8, 48(SP)

	LOAD(0, SI, X3)
	LOAD(0, DX, X9)
	ROUNDS(0, X3, X1, X2)
	ROUNDS(0, X9, X7, X8)
	LOAD(1, SI, X4)
	LOAD(1, DX, X10)
	ROUNDS(1, X4, X1, X2)
	ROUNDS(1, X10, X7, X8)
	MIX(X3, X4)
	MIX(X9, X10)
	LOAD(2, SI, X5)
	LOAD(2, DX, X11)
	ROUNDS(2, X5, X1, X2)
	ROUNDS(2, X11, X7, X8)
	MIX(X4, X5)
	MIX(X10, X11)
	LOAD(3, SI, X6)
	LOAD(3, DX, X12)
	GROUP(3, X3, X5, X6, X9, X11, X12)
	GROUP(4, X4, X6, X3, X10, X12, X9)
	GROUP(5, X5, X3, X4, X11, X9, X10)
	GROUP(6, X6, X4, X5, X12, X10, X11)
	GROUP(7, X3, X5, X6, X9, X11, X12)
	GROUP(8, X4, X6, X3, X10, X12, X9)
	GROUP(9, X5, X3, X4, X11, X9, X10)
	GROUP(10, X6, X4, X5, X12, X10, X11)
	GROUP(11, X3, X5, X6, X9, X11, X12)
	GROUP(12, X4, X6, X3, X10, X12, X9)
	ROUNDS(13, X4, X1, X2)
	EXTEND(X5, X3, X4)
	ROUNDS(13, X10, X7, X8)
	EXTEND(X11, X9, X10)
	ROUNDS(14, X5, X1, X2)
	EXTEND(X6, X4, X5)
	ROUNDS(14, X11, X7, X8)
	EXTEND(X12, X10, X11)
	ROUNDS(15, X6, X1, X2)
	ROUNDS(15, X12, X7, X8)

	ADD(0, X1)
	ADD(16, X2)
	ADD(32, X7)
	ADD(48, X8)
	ADDQ $64, SI
	ADDQ $64, DX
	DECQ CX
	JNZ  loop

done:
	PACK(DI, X1, X2)
	PACK(R9, X7, X8)
	RET

DATA swap<>+0(SB)/8, $0x0405060700010203
DATA swap<>+8(SB)/8, $0x0c0d0e0f08090a0b
GLOBL swap<>(SB), RODATA|NOPTR, $16
