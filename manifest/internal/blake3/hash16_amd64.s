//go:build !purego

#include "textflag.h"

// Sixteen inputs at once: word i of the state of all of them is in Zi, word i of their
// blocks in Z(16+i), one lane for each input.

// Half of the mixing of section 2.2, of four columns or four diagonals side by side.
// Their a is always in Z0 to Z3.
#define MIX(b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3, m0, m1, m2, m3, rd, rb) \
	VPADDD m0, Z0, Z0; VPADDD m1, Z1, Z1; VPADDD m2, Z2, Z2; VPADDD m3, Z3, Z3 \
	VPADDD b0, Z0, Z0; VPADDD b1, Z1, Z1; VPADDD b2, Z2, Z2; VPADDD b3, Z3, Z3 \
	VPXORD Z0, d0, d0; VPXORD Z1, d1, d1; VPXORD Z2, d2, d2; VPXORD Z3, d3, d3 \
	VPRORD rd, d0, d0; VPRORD rd, d1, d1; VPRORD rd, d2, d2; VPRORD rd, d3, d3 \
	VPADDD d0, c0, c0; VPADDD d1, c1, c1; VPADDD d2, c2, c2; VPADDD d3, c3, c3 \
	VPXORD c0, b0, b0; VPXORD c1, b1, b1; VPXORD c2, b2, b2; VPXORD c3, b3, b3 \
	VPRORD rb, b0, b0; VPRORD rb, b1, b1; VPRORD rb, b2, b2; VPRORD rb, b3, b3

#define COLUMNS(m0, m1, m2, m3, rd, rb) \
	MIX(Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, m0, m1, m2, m3, rd, rb)

#define DIAGONALS(m0, m1, m2, m3, rd, rb) \
	MIX(Z5, Z6, Z7, Z4, Z10, Z11, Z8, Z9, Z15, Z12, Z13, Z14, m0, m1, m2, m3, rd, rb)

#define ROUND(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15) \
	COLUMNS(m0, m2, m4, m6, $16, $12)      \
	COLUMNS(m1, m3, m5, m7, $8, $7)        \
	DIAGONALS(m8, m10, m12, m14, $16, $12) \
	DIAGONALS(m9, m11, m13, m15, $8, $7)

// Read 64 bytes of four neighbouring inputs, and move on to the next four.
#define READ(A, B, C, D) \
	VMOVDQU32 (R10), A         \
	VMOVDQU32 (R10)(R8*1), B   \
	VMOVDQU32 (R10)(R8*2), C   \
	VMOVDQU32 (R10)(R11*1), D  \
	LEAQ      (R10)(R8*4), R10

// Transpose squares of 4 x 4 words: one in each quarter of the four registers.
#define TRANSPOSE_WORDS(A, B, C, D) \
	VPUNPCKLDQ  B, A, Z8   \
	VPUNPCKHDQ  B, A, Z9   \
	VPUNPCKLDQ  D, C, Z10  \
	VPUNPCKHDQ  D, C, Z11  \
	VPUNPCKLQDQ Z10, Z8, A \
	VPUNPCKHQDQ Z10, Z8, B \
	VPUNPCKLQDQ Z11, Z9, C \
	VPUNPCKHQDQ Z11, Z9, D

// Transpose the square of 4 x 4 quarters of the four registers.
#define TRANSPOSE_QUARTERS(A, B, C, D) \
	VSHUFI32X4 $0x88, B, A, Z8   \
	VSHUFI32X4 $0xdd, B, A, Z9   \
	VSHUFI32X4 $0x88, D, C, Z10  \
	VSHUFI32X4 $0xdd, D, C, Z11  \
	VSHUFI32X4 $0x88, Z10, Z8, A \
	VSHUFI32X4 $0x88, Z11, Z9, B \
	VSHUFI32X4 $0xdd, Z10, Z8, C \
	VSHUFI32X4 $0xdd, Z11, Z9, D

// Write half a value of four inputs that are four apart.
#define WRITE(H, off) \
	VEXTRACTI32X4 $0, H, (off)(DI)     \
	VEXTRACTI32X4 $1, H, (off+128)(DI) \
	VEXTRACTI32X4 $2, H, (off+256)(DI) \
	VEXTRACTI32X4 $3, H, (off+384)(DI)

// func hash16AVX512(out, in *byte, size, blocks int, counters *[2][16]uint32, start, end uint32)
TEXT ·hash16AVX512(SB), NOSPLIT, $0-48
	MOVQ out+0(FP), DI
	MOVQ in+8(FP), SI
	MOVQ size+16(FP), R8
	MOVQ blocks+24(FP), CX
	MOVQ counters+32(FP), DX
	MOVL start+40(FP), AX
	LEAQ (R8)(R8*2), R11
	LEAQ ·iv(SB), BX
	MOVL $64, R12

	VPBROADCASTD 0(BX), Z0
	VPBROADCASTD 4(BX), Z1
	VPBROADCASTD 8(BX), Z2
	VPBROADCASTD 12(BX), Z3
	VPBROADCASTD 16(BX), Z4
	VPBROADCASTD 20(BX), Z5
	VPBROADCASTD 24(BX), Z6
	VPBROADCASTD 28(BX), Z7

block:
	MOVQ SI, R10
	READ(Z16, Z17, Z18, Z19)
	READ(Z20, Z21, Z22, Z23)
	READ(Z24, Z25, Z26, Z27)
	READ(Z28, Z29, Z30, Z31)
	TRANSPOSE_WORDS(Z16, Z17, Z18, Z19)
	TRANSPOSE_WORDS(Z20, Z21, Z22, Z23)
	TRANSPOSE_WORDS(Z24, Z25, Z26, Z27)
	TRANSPOSE_WORDS(Z28, Z29, Z30, Z31)
	TRANSPOSE_QUARTERS(Z16, Z20, Z24, Z28)
	TRANSPOSE_QUARTERS(Z17, Z21, Z25, Z29)
	TRANSPOSE_QUARTERS(Z18, Z22, Z26, Z30)
	TRANSPOSE_QUARTERS(Z19, Z23, Z27, Z31)

	CMPQ CX, $1
	JNE  rounds
	ORL  end+44(FP), AX

rounds:
	VPBROADCASTD 0(BX), Z8
	VPBROADCASTD 4(BX), Z9
	VPBROADCASTD 8(BX), Z10
	VPBROADCASTD 12(BX), Z11
	VMOVDQU32    0(DX), Z12
	VMOVDQU32    64(DX), Z13
	VPBROADCASTD R12, Z14
	VPBROADCASTD AX, Z15
	ROUND(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31)
	ROUND(Z18, Z22, Z19, Z26, Z23, Z16, Z20, Z29, Z17, Z27, Z28, Z21, Z25, Z30, Z31, Z24)
	ROUND(Z19, Z20, Z26, Z28, Z29, Z18, Z23, Z30, Z22, Z21, Z25, Z16, Z27, Z31, Z24, Z17)
	ROUND(Z26, Z23, Z28, Z25, Z30, Z19, Z29, Z31, Z20, Z16, Z27, Z18, Z21, Z24, Z17, Z22)
	ROUND(Z28, Z29, Z25, Z27, Z31, Z26, Z30, Z24, Z23, Z18, Z21, Z19, Z16, Z17, Z22, Z20)
	ROUND(Z25, Z30, Z27, Z21, Z24, Z28, Z31, Z17, Z29, Z19, Z16, Z26, Z18, Z22, Z20, Z23)
	ROUND(Z27, Z31, Z21, Z16, Z17, Z25, Z24, Z22, Z30, Z26, Z18, Z28, Z19, Z20, Z23, Z29)
	VPXORD Z8, Z0, Z0
	VPXORD Z9, Z1, Z1
	VPXORD Z10, Z2, Z2
	VPXORD Z11, Z3, Z3
	VPXORD Z12, Z4, Z4
	VPXORD Z13, Z5, Z5
	VPXORD Z14, Z6, Z6
	VPXORD Z15, Z7, Z7

	XORL AX, AX
	ADDQ $64, SI
	DECQ CX
	JNZ  block

	TRANSPOSE_WORDS(Z0, Z1, Z2, Z3)
	TRANSPOSE_WORDS(Z4, Z5, Z6, Z7)
	WRITE(Z0, 0)
	WRITE(Z4, 16)
	WRITE(Z1, 32)
	WRITE(Z5, 48)
	WRITE(Z2, 64)
	WRITE(Z6, 80)
	WRITE(Z3, 96)
	WRITE(Z7, 112)
	VZEROUPPER
	RET
