# SPDX-License-Identifier: MIT
"""BART's files and MRD's, in numpy: what the comparisons with BART and the sums outside Fornix share.

BART keeps an array as NAME.hdr (text) and NAME.cfl (complex64, first index fastest). Its trajectories are in cycles
per field of view: ours (cycles/voxel) times the matrix. Its sign and its image centre floor(N/2) are ours; that is
not taken on trust but tested: test_spiral_phantom.py predicts k-space from both.
"""
import os
import shutil
import subprocess

import h5py
import numpy as np

IMAGING_EXCLUDED = (19, 20, 23, 24, 26, 27, 28, 29)  # MRD flags of readouts that are no part of an image


def write_cfl(name, array):
    """array as BART orders it: its first index is the fastest in the file."""
    array = np.asarray(array, dtype=np.complex64)
    with open(name + ".hdr", "w") as header:
        header.write("# Dimensions\n" + " ".join(str(n) for n in array.shape) + "\n")
    array.ravel(order="F").tofile(name + ".cfl")


def read_cfl(name):
    with open(name + ".hdr") as header:
        lines = header.read().splitlines()
    dims = [int(n) for n in lines[lines.index("# Dimensions") + 1].split()]
    data = np.fromfile(name + ".cfl", dtype=np.complex64)
    return np.squeeze(data.reshape(dims, order="F"))


def bart(*arguments, folder):
    """Runs BART in a folder; its output goes to the exception's text where it fails."""
    done = subprocess.run(["bart", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"bart {' '.join(arguments)}: {done.stdout}")
    return done.stdout


def have_bart():
    return shutil.which("bart") is not None


def read_mrd(path, group="dataset", keep=lambda head: True):
    """k (M, dims) as the file has it, samples (M, coils) complex64, heads: imaging readouts, in the file's order."""
    skip = sum(1 << (flag - 1) for flag in IMAGING_EXCLUDED)
    ks, samples, heads = [], [], []
    with h5py.File(path, "r") as file:
        for record in file[group]["data"][:]:
            head = record["head"]
            n, coils = int(head["number_of_samples"]), int(head["active_channels"])
            if int(head["flags"]) & skip or n == 0 or not keep(head):
                continue
            ks.append(record["traj"].reshape(n, int(head["trajectory_dimensions"])))
            samples.append(record["data"].view(np.complex64).reshape(coils, n).T)
            heads.append(head)
    return np.concatenate(ks), np.concatenate(samples), heads


def to_bart(folder, k_voxel, samples, n_readouts, matrix):
    """Writes `traj` and `ksp` of k (M, 2 or 3) in cycles/voxel and samples (M, coils)."""
    os.makedirs(folder, exist_ok=True)
    m, dims = k_voxel.shape
    per = m // n_readouts
    traj = np.zeros((3, per, n_readouts))
    for axis in range(dims):
        traj[axis] = (k_voxel[:, axis] * matrix[axis]).reshape(n_readouts, per).T
    write_cfl(os.path.join(folder, "traj"), traj)
    coils = samples.shape[1]
    write_cfl(os.path.join(folder, "ksp"), samples.reshape(n_readouts, per, coils).transpose(1, 0, 2)[None])


def predict(k_voxel, images):
    """The forward sum, exactly, in double: images (nx, ny, nz, coils) to samples (M, coils), e^{-i 2 pi k.x}, no scale.

    Separable: one axis after the other, so that its cost is M * (nx + ny nz) products a coil, in blocks.
    """
    nx, ny, nz, coils = images.shape
    axes = [np.arange(n) - n // 2 for n in (nx, ny, nz)]
    out = np.empty((len(k_voxel), coils), dtype=np.complex128)
    flat = images.reshape(nx, ny * nz * coils).astype(np.complex128)
    for start in range(0, len(k_voxel), 512):
        block = slice(start, min(start + 512, len(k_voxel)))
        e = [np.exp(-2j * np.pi * np.outer(k_voxel[block, d] if d < k_voxel.shape[1] else 0 * k_voxel[block, 0], axes[d]))
             for d in range(3)]
        part = (e[0] @ flat).reshape(-1, ny, nz, coils)
        part = np.einsum("my,myzc->mzc", e[1], part)
        out[block] = np.einsum("mz,mzc->mc", e[2], part)
    return out


def adjoint(k_voxel, samples, matrix):
    """The adjoint sum, exactly, in double: samples (M, coils) to images (nx, ny, nz, coils), e^{+i 2 pi k.x}, no scale."""
    nx, ny, nz = matrix
    axes = [np.arange(n) - n // 2 for n in matrix]
    out = np.zeros((nx, ny * nz, samples.shape[1]), dtype=np.complex128)
    for start in range(0, len(k_voxel), 256):
        block = slice(start, min(start + 256, len(k_voxel)))
        e = [np.exp(2j * np.pi * np.outer(k_voxel[block, d] if d < k_voxel.shape[1] else 0 * k_voxel[block, 0], axes[d]))
             for d in range(3)]
        right = (e[1][:, :, None] * e[2][:, None, :]).reshape(-1, ny * nz)
        for coil in range(samples.shape[1]):
            out[:, :, coil] += e[0].T @ (samples[block, coil][:, None] * right)
    return out.reshape(nx, ny, nz, -1)


def data_residual(measured, predicted):
    """||D - a P|| / ||D|| with the complex factor a that makes it least, and a."""
    a = np.vdot(predicted, measured) / np.vdot(predicted, predicted)
    return float(np.linalg.norm(measured - a * predicted) / np.linalg.norm(measured)), a
